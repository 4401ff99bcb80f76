# Checks lines and outputs against the types in clients/python.
import json, sys, typing

sys.path.insert(0, sys.argv[1])
import coder_types as types


def check(value, kind, where):
    if isinstance(kind, (str, typing.ForwardRef)):
        kind = getattr(types, kind if isinstance(kind, str) else kind.__forward_arg__)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is typing.Any:
        return
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind, vars(types))
        assert isinstance(value, dict), where
        for key in kind.__required_keys__:
            assert key in value, f"{where}: no {key}"
        for key in value:
            assert key in hints, f"{where}: {key} has no type"
            check(value[key], hints[key], f"{where}.{key}")
    elif origin is typing.Literal:
        assert value in args, f"{where}: {value}"
    elif origin is typing.Union:
        wrong = []
        for one in args:
            try:
                return check(value, one, where)
            except AssertionError as e:
                wrong.append(str(e))
        raise AssertionError(f"{where}: none fits: {wrong}")
    elif origin is list:
        assert isinstance(value, list), where
        for one in value:
            check(one, args[0], where + "[]")
    elif origin is dict:
        assert isinstance(value, dict), where
        for key in value:
            check(value[key], args[1], f"{where}.{key}")
    elif kind is None or kind is type(None):
        assert value is None, where
    elif kind is float:
        assert isinstance(value, (int, float)), where
    else:
        assert isinstance(value, kind), f"{where}: {value!r} is no {kind}"


said = json.load(sys.stdin)
for line in said["lines"]:
    line = json.loads(line)
    check(line, types.Event, line["type"])
outputs = typing.get_type_hints(types.Outputs, vars(types))
for name, lines in said["outputs"].items():
    for line in lines:
        check(json.loads(line), outputs[name], name)
print("typed")
