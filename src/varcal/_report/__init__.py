"""Reports of audits, comparisons and monitors as HTML pages, Markdown or JSON."""
