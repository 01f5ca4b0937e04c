"""The columns of the Bank Account Fraud suite: their order, types, categories and missing values."""

__all__ = [
    "CATEGORIES",
    "COLUMNS",
    "EXTRA_COLUMNS",
    "FLAGS",
    "LABEL",
    "MISSING_BELOW_ZERO",
    "MONTHS",
    "NUMBERS",
]

LABEL = "fraud_bool"
MONTHS = 8

COLUMNS = (
    LABEL,
    "income",
    "name_email_similarity",
    "prev_address_months_count",
    "current_address_months_count",
    "customer_age",
    "days_since_request",
    "intended_balcon_amount",
    "payment_type",
    "zip_count_4w",
    "velocity_6h",
    "velocity_24h",
    "velocity_4w",
    "bank_branch_count_8w",
    "date_of_birth_distinct_emails_4w",
    "employment_status",
    "credit_risk_score",
    "email_is_free",
    "housing_status",
    "phone_home_valid",
    "phone_mobile_valid",
    "bank_months_count",
    "has_other_cards",
    "proposed_credit_limit",
    "foreign_request",
    "source",
    "session_length_in_minutes",
    "device_os",
    "keep_alive_session",
    "device_distinct_emails_8w",
    "device_fraud_count",
    "month",
)

# Variants III and V carry two more columns, behind the others.
EXTRA_COLUMNS = ("x1", "x2")

CATEGORIES = {
    "payment_type": ("AA", "AB", "AC", "AD", "AE"),
    "employment_status": ("CA", "CB", "CC", "CD", "CE", "CF", "CG"),
    "housing_status": ("BA", "BB", "BC", "BD", "BE", "BF", "BG"),
    "source": ("INTERNET", "TELEAPP"),
    "device_os": ("linux", "macintosh", "other", "windows", "x11"),
}

# Everything that is neither text nor one of these is a whole number.
NUMBERS = (
    "income",
    "name_email_similarity",
    "days_since_request",
    "intended_balcon_amount",
    "velocity_6h",
    "velocity_24h",
    "velocity_4w",
    "proposed_credit_limit",
    "session_length_in_minutes",
    *EXTRA_COLUMNS,
)

# Columns that hold 0 or 1 only.
FLAGS = (
    LABEL,
    "email_is_free",
    "phone_home_valid",
    "phone_mobile_valid",
    "has_other_cards",
    "foreign_request",
    "keep_alive_session",
)

# Columns where a negative value stands for a missing one: -1, or any negative transferred amount.
MISSING_BELOW_ZERO = (
    "prev_address_months_count",
    "current_address_months_count",
    "intended_balcon_amount",
    "bank_months_count",
    "session_length_in_minutes",
    "device_distinct_emails_8w",
)
