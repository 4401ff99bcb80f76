// Package jsonx encodes JSON for readability: on one line, with <, > and & unescaped. coder uses it for
// everything that it saves or sends.
package jsonx

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Marshal encodes v without a trailing newline.
func Marshal(v any) (json.RawMessage, error) { return Append(nil, v) }

// Append appends the JSON of v to b.
func Append(b []byte, v any) ([]byte, error) {
	enc := json.NewEncoder((*byteWriter)(&b))
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b, []byte("\n")), nil
}

// byteWriter collects what is written to it. It copies a large text once, even if more follows.
type byteWriter []byte

func (a *byteWriter) Write(p []byte) (int, error) {
	*a = append(slices.Grow(*a, len(p)+len(p)/64), p...)
	return len(p), nil
}

// MustMarshal encodes values that always encode: strings, numbers, booleans, and maps, slices and structs of
// these. It panics on anything else.
func MustMarshal(v any) json.RawMessage {
	b, err := Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// StringList is a list of strings. In JSON a single string may stand for a list of one.
type StringList []string

// UnmarshalJSON accepts either form.
func (l *StringList) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*l = StringList{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(l))
}

// MapStrings applies f to every string in a JSON text, including member names. It rewrites only what f
// changes; without changes it returns the given text.
func MapStrings(text []byte, f func(string) string) []byte {
	var b bytes.Buffer
	from := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) {
			break // not JSON
		}
		var s string
		if json.Unmarshal(text[i:end+1], &s) == nil {
			if other := f(s); other != s {
				b.Write(text[from:i])
				b.Write(MustMarshal(other))
				from = end + 1
			}
		}
		i = end
	}
	if from == 0 {
		return text
	}
	b.Write(text[from:])
	return b.Bytes()
}
