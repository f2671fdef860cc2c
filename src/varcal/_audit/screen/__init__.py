"""What the first screen of an audit is made of: checks, judgement, lede and next steps."""
