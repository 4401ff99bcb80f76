// Package jsonx writes JSON the way people read it: on one line, with <, > and
// & as they are. Everything the program keeps or sends goes through it.
package jsonx

import (
	"bytes"
	"encoding/json"
)

// JSON encodes v without a trailing newline.
func JSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Must is JSON for values that always encode: strings, numbers, booleans, and
// maps, slices and structs of such. It panics on anything else.
func Must(v any) json.RawMessage {
	b, err := JSON(v)
	if err != nil {
		panic(err)
	}
	return b
}
