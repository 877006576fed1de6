"""What everything else stands on: specs, operators and their kinds, records, interpreters, `grad`.

Read in this order: `dtype`, `spec`, `record`, `op`, `interpreter`, `grad`, `slots`, `errors`.
"""
