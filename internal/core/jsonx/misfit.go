package jsonx

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"coder/internal/core/message"
)

// ExplainMismatch explains to the user why their JSON does not fit a struct: err is the decoder's error, and into
// is the decoding target.
func ExplainMismatch(err error, into any) error {
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		key, _ := strconv.Unquote(quoted)
		return message.Errorf("unknown key %q; use one of: %s", key, strings.Join(jsonKeys(into), ", "))
	}
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	found := map[string]string{"number": "a number", "string": "a string", "bool": "true or false", "object": "an object",
		"array": "a list"}[strings.Fields(wrong.Value + " ?")[0]]
	if found == "" {
		found = wrong.Value
	}
	why := message.Errorf("expected %s, found %s", expectedForm(wrong.Type), found)
	if wrong.Field != "" {
		why = message.Errorf("%s: %w", wrong.Field, why)
	}
	return why
}

// jsonKeys returns the JSON keys of a struct or a pointer to one.
func jsonKeys(into any) (all []string) {
	t := reflect.TypeOf(into)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "" && key != "-" {
			all = append(all, key)
		}
	}
	return all
}

// expectedForm returns the JSON form of a type.
func expectedForm(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Pointer:
		return expectedForm(t.Elem())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return t.String()
}
