"""Pictures of timings and of quality: specifications of Vega-Lite, drawn to SVG (extra ``plots``).

A module for each picture: a function from data to a specification, a plain dict. Each takes
``about``, a line under the heading, and ``width``, that of the picture in px. ``draw.svg`` draws
it with vl-convert-python: light or dark as the reader's system is, readable in black and white and
by a screen reader, without any reference to another file. Equal data gives equal bytes in every
process. Texts from data are shown as they are, in any script, and never interpreted.
"""
