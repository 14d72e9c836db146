"""The sections of a report, a file each; ``analysis.report.contents`` lists them in order."""
