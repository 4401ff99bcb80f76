// Clients writes types for TypeScript and Python from the schema that coder events schema prints.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// schema is the part of JSON Schema that coder uses.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"` // a name, or a list of names
	Const      any                `json:"const"`
	AnyOf      []*schema          `json:"anyOf"`
	Items      *schema            `json:"items"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	More       *schema            `json:"additionalProperties"`
	Defs       map[string]*schema `json:"$defs"`
	Version    int                `json:"version"`
}

func main() {
	if err := write(os.Stdin, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(in io.Reader, dir string) error {
	var s schema
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return err
	}
	for name, text := range files(s) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// files returns the text of each file by its path.
func files(s schema) map[string]string {
	var ts, py strings.Builder
	fmt.Fprintf(&ts, "// Made by make clients from coder events schema, version %d.\n", s.Version)
	fmt.Fprintf(&py, "\"\"\"Made by make clients from coder events schema, version %d.\"\"\"\n\nfrom typing import Any, Literal, NotRequired, TypedDict, Union\n", s.Version)
	var unions strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Defs)) {
		d := s.Defs[name]
		if d.Properties == nil {
			fmt.Fprintf(&ts, "\nexport type %s = %s;\n", name, typescript(d, ""))
			fmt.Fprintf(&unions, "\n%s = %s\n", name, python(d, false))
			continue
		}
		fmt.Fprintf(&ts, "\nexport interface %s %s\n", name, typescript(d, ""))
		fmt.Fprintf(&py, "\n%s = %s\n", name, strings.ReplaceAll(python(d, true), `TypedDict("", {`,
			`TypedDict("`+name+`", {`))
	}
	return map[string]string{"typescript/coder.d.ts": ts.String(), "python/coder_types.py": py.String() + unions.String()}
}

// kinds returns the names of the types that a value may have.
func (s *schema) kinds() (names []string) {
	switch t := s.Type.(type) {
	case string:
		names = []string{t}
	case []any:
		for _, one := range t {
			names = append(names, one.(string))
		}
	}
	return names
}

func name(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

func literal(v any) string { text, _ := json.Marshal(v); return string(text) }

// typescript returns a type; lines after the first are indented.
func typescript(s *schema, indent string) string {
	switch {
	case s.Ref != "":
		return name(s.Ref)
	case s.Const != nil:
		return literal(s.Const)
	case s.AnyOf != nil:
		return joined(s.AnyOf, " | ", func(one *schema) string { return typescript(one, indent) })
	case s.Properties != nil:
		text := "{\n"
		for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
			mark := "?"
			if slices.Contains(s.Required, key) {
				mark = ""
			}
			text += indent + "  " + literal(key) + mark + ": " + typescript(s.Properties[key], indent+"  ") + ";\n"
		}
		return text + indent + "}"
	}
	var all []string
	for _, kind := range s.kinds() {
		switch kind {
		case "integer":
			kind = "number"
		case "array":
			if kind = "unknown[]"; s.Items != nil {
				kind = "Array<" + typescript(s.Items, indent) + ">"
			}
		case "object":
			if kind = "Record<string, unknown>"; s.More != nil {
				kind = "Record<string, " + typescript(s.More, indent) + ">"
			}
		}
		all = append(all, kind)
	}
	if len(all) == 0 {
		return "unknown"
	}
	return strings.Join(all, " | ")
}

// python returns a type; names of types are quoted where they may come later.
func python(s *schema, quoted bool) string {
	switch {
	case s.Ref != "" && quoted:
		return literal(name(s.Ref))
	case s.Ref != "":
		return name(s.Ref)
	case s.Const != nil:
		return "Literal[" + literal(s.Const) + "]"
	case s.AnyOf != nil:
		return "Union[" + joined(s.AnyOf, ", ", func(one *schema) string { return python(one, quoted) }) + "]"
	case s.Properties != nil:
		text := "TypedDict(\"\", {\n"
		for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
			value := python(s.Properties[key], quoted)
			if !slices.Contains(s.Required, key) {
				value = "NotRequired[" + value + "]"
			}
			text += "    " + literal(key) + ": " + value + ",\n"
		}
		return text + "})"
	}
	var all []string
	for _, kind := range s.kinds() {
		switch kind {
		case "integer":
			kind = "int"
		case "number":
			kind = "float"
		case "string":
			kind = "str"
		case "boolean":
			kind = "bool"
		case "null":
			kind = "None"
		case "array":
			if kind = "list[Any]"; s.Items != nil {
				kind = "list[" + python(s.Items, quoted) + "]"
			}
		case "object":
			if kind = "dict[str, Any]"; s.More != nil {
				kind = "dict[str, " + python(s.More, quoted) + "]"
			}
		}
		all = append(all, kind)
	}
	switch len(all) {
	case 0:
		return "Any"
	case 1:
		return all[0]
	}
	return "Union[" + strings.Join(all, ", ") + "]"
}

func joined(list []*schema, by string, text func(*schema) string) string {
	var all []string
	for _, one := range list {
		all = append(all, text(one))
	}
	return strings.Join(all, by)
}
