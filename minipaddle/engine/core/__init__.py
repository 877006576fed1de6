"""The base of everything else: specs, operators and their kinds, records, interpreters, `grad`.

Read in this order: `errors`, `dtype`, `slots`, `spec`, `record`, `op`, `interpreter`, `grad`.
"""
