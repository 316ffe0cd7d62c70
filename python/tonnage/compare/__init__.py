# SPDX-License-Identifier: Apache-2.0
"""`tonnage compare`: one model by every route it was exported for, on one traffic, side by side.

cases.py      what is compared: routes, precisions, and the incident (native as-is, batches padded to the longest)
measure.py    one case: a server of its own, load, kernel readings
answers.py    do the answers stay what the module answered?
ties.py       what a choice ties you to
recommend.py  pure: which route, and why
report.py     Markdown and JSON; page.py: one HTML page without network
"""
