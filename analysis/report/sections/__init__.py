"""The sections of a report, a file each, in the order of ``rgr_dist.analysis.report.contents``."""
