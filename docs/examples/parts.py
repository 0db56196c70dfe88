"""What a package offers of majority.py."""

from dataclasses import replace

from acme_orchestras import majority as file

majority = replace(file.majority, solver="acme_orchestras/majority")
