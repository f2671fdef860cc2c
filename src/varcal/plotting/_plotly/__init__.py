"""Pictures drawn by plotly."""
