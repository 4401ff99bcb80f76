// Package jsonx writes JSON the way people read it: on one line, with <, > and
// & as they are. Everything the program keeps or sends goes through it.
package jsonx

import (
	"bytes"
	"encoding/json"
	"slices"
)

// JSON encodes v without a trailing newline.
func JSON(v any) (json.RawMessage, error) { return Append(nil, v) }

// Append is JSON that appends to b.
func Append(b []byte, v any) ([]byte, error) {
	enc := json.NewEncoder((*appender)(&b))
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b, []byte("\n")), nil
}

// appender appends what is written to it. A large text is copied once, also if more follows.
type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(slices.Grow(*a, len(p)+len(p)/64), p...)
	return len(p), nil
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

// List is a list of strings; a single one may stand for itself.
type List []string

// UnmarshalJSON takes either form.
func (l *List) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*l = List{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(l))
}

// Strings is a JSON text in which f has been applied to every string, names of
// members included. Only what f changes is written anew; if that is nothing the
// text is the one that was given.
func Strings(text []byte, f func(string) string) []byte {
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
			break // it is no JSON
		}
		var s string
		if json.Unmarshal(text[i:end+1], &s) == nil {
			if other := f(s); other != s {
				b.Write(text[from:i])
				b.Write(Must(other))
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
