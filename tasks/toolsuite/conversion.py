"""Unit conversion for the conversion tools: exact factors, rounded in decimal as people round."""

from decimal import ROUND_HALF_UP, Decimal

from agenteval.spec import ToolError


def convert_units(args, world, _clock):
    """A quantity in another unit; the world's `units` say each unit's quantity and its size in the base unit."""
    units = world["units"]
    for code in (args["from_unit"], args["to_unit"]):
        if code not in units:
            raise ToolError(f"there is no unit with the code {code!a}; list_units gives the codes of a quantity")
    source, target = units[args["from_unit"]], units[args["to_unit"]]
    if source["quantity"] != target["quantity"]:
        raise ToolError(
            f"{args['from_unit']} measures {source['quantity']} and {args['to_unit']} measures {target['quantity']}"
        )
    exact = Decimal(str(args["value"])) * Decimal(source["size"]) / Decimal(target["size"])
    step = Decimal(1).scaleb(-args["decimals"])
    return {
        "from": {"value": args["value"], "unit": args["from_unit"]},
        "to": {"value": float(exact.quantize(step, ROUND_HALF_UP)), "unit": args["to_unit"]},
    }, world
