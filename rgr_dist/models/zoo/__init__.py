"""Attention layers that ship as files of the protocol of ``models.own_layer``.

Some are those of other papers, each with its source.
"""
