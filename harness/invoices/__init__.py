"""What providers say they billed, and whether the ledger says the same.

Reading order: `lines.py` (what every export is turned into), then one reader per kind of export
(`openai_usage.py`, `anthropic_usage.py`, `google_billing.py`, `csv_rows.py`), `reading.py` (which
reader a file wants), `accounts.py` (whose traffic it is), `names.py` (which model is which),
`sums.py`, `bill.py` and `counted.py` (both sides added up), `check.py`, `reconcile.py` (the
comparison) and `table.py`. Nothing here asks a provider: the user exports the file. Prices are
harness/prices/pricing.py.
"""

from harness.invoices.lines import Invoice, InvoiceLine
from harness.invoices.reading import read_invoice
from harness.invoices.reconcile import reconcile
from harness.invoices.result import Fault, Options, Reconciled, Reconciliation
from harness.invoices.table import as_text

__all__ = [
    "Fault",
    "Invoice",
    "InvoiceLine",
    "Options",
    "Reconciled",
    "Reconciliation",
    "as_text",
    "read_invoice",
    "reconcile",
]
