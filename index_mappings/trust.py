"""The kinds of trust signal that there are, in the order in which they are told (A8)."""

from typing import Final

TRUST_KINDS: Final = (
    "tls_issuer",
    "tls_grade",
    "hosting_isp",
    "hosting_country",
    "domain_registered_at",
    "registrar",
    "payment_methods",
)
