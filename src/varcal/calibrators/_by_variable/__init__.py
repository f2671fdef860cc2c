"""Calibrators that split or extend by variables: trees and augmented regression."""
