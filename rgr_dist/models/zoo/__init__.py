"""Attention layers that ship as files, each as ``models.layer`` takes them.

Some come from other papers, which their files cite.
"""
