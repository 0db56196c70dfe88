"""Invoice formats: their columns, and the documentation that each format was checked against."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

SHOWN, LONGEST = 20, 80
"""Maximum number of listed unknown columns, and of printed characters of a column's name."""
_AS_OF = "as of 2026-11-23"
_OPENAI = "OpenAI's OpenAPI document 2.3.0"
_ANTHROPIC = f"imitated, from Anthropic's Admin API pages {_AS_OF}"

HELD_AGAINST: Mapping[str, str] = {
    "openai-usage": f"held against {_OPENAI}, Completions usage object",
    "openai-costs": f"held against {_OPENAI}, Costs object",
    "openai-usage-csv": f"imitated, with the fields of {_OPENAI} as columns",
    "anthropic-usage": _ANTHROPIC,
    "anthropic-costs": _ANTHROPIC,
    "google-billing": f"imitated, from Google's page on the standard data export {_AS_OF}",
    "openrouter-csv": f"imitated, as public tools read it {_AS_OF}",
    "csv": "podium's own format",
}
"""Invoice format -> documentation that its columns were checked against; `imitated`: we had no
real export."""

_OPENAI_USAGE = """
    object input_tokens output_tokens input_cached_tokens input_cache_write_tokens
    num_model_requests project_id user_id api_key_id model batch service_tier
    input_uncached_tokens input_text_tokens output_text_tokens input_cached_text_tokens
    input_audio_tokens output_audio_tokens input_cached_audio_tokens input_image_tokens
    output_image_tokens input_cached_image_tokens
"""
_ANTHROPIC_COMMON = "model workspace_id service_tier context_window inference_geo"
COLUMNS: Mapping[str, str] = {
    "openai-usage": _OPENAI_USAGE,
    "openai-usage-csv": _OPENAI_USAGE
    + "start_time end_time start_time_iso end_time_iso project_name api_key_name user_email",
    "openai-costs": "object amount.value amount.currency line_item quantity project_id "
    "project_name organization_id organization_name api_key_id",
    "anthropic-usage": f"""
        {_ANTHROPIC_COMMON} api_key_id account_id service_account_id uncached_input_tokens
        cache_read_input_tokens cache_creation.ephemeral_5m_input_tokens
        cache_creation.ephemeral_1h_input_tokens output_tokens server_tool_use.web_search_requests
    """,
    "anthropic-costs": f"{_ANTHROPIC_COMMON} amount currency cost_type description token_type",
    "google-billing": """
        billing_account_id service.id service.description sku.id sku.description
        usage_start_time usage_end_time project.id project.number project.name project.labels
        project.ancestry_numbers project.ancestors labels system_labels tags location.location
        location.country location.region location.zone export_time cost currency
        currency_conversion_rate usage.amount usage.unit usage.amount_in_pricing_units
        usage.pricing_unit credits invoice.month invoice.publisher_type cost_type adjustment_info
        seller_name transaction_type cost_at_list
    """,
    "openrouter-csv": """
        generation_id created_at cost_total cost_web_search cost_cache cost_file_processing
        byok_usage_inference tokens_prompt tokens_completion tokens_reasoning tokens_cached
        model_permaslug provider_name variant cancelled streamed user finish_reason_raw
        finish_reason_normalized generation_time_ms time_to_first_token_ms app_name api_key_name
    """,
    "csv": "request_id model time input_tokens cached_tokens output_tokens usd currency "
    "project_id workspace_id project.id project api_key_id api_key",
}
"""Invoice format -> the columns that podium reads, and known columns that podium ignores."""


def columns_of(piece: Any) -> Iterator[str]:
    """Yield an invoice row's (or time bucket's) column names; nested columns as `outer.inner`."""
    rows: Any = _table(piece).get("results", [piece])
    for row in cast(list[Any], rows) if isinstance(rows, list) else []:
        for name, value in _table(row).items():
            nested = _table(value)
            yield from (f"{name}.{inner}" for inner in nested) if nested else (name,)


def _table(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}


def unknown_columns(format: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that podium does not know in a format; after `SHOWN` names, a count."""
    names = {_flat(name) for name in COLUMNS[format].split()}
    names |= {name.rpartition(".")[0] for name in COLUMNS[format].split()}  # if null or empty
    unknown = sorted(name[:LONGEST] for name in {*columns} if _flat(name) not in names)
    remainder = f"and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else ""
    return (*unknown[:SHOWN], *filter(None, [remainder]))


def _flat(name: str) -> str:
    return name.replace(".", "_")  # a CSV has `sku_description` for a nested value of JSON
