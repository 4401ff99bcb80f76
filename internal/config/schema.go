package config

import "encoding/json"

// schema is the part of JSON Schema that coder uses.
type schema struct {
	Dialect     string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        string             `json:"type,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Default     any                `json:"default,omitempty"`
	Minimum     *float64           `json:"minimum,omitempty"`
	Maximum     *float64           `json:"maximum,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	AnyOf       []*schema          `json:"anyOf,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	More        any                `json:"additionalProperties,omitempty"` // false or a schema
}

// Schema describes a settings file: JSON Schema, draft 2020-12.
func Schema() json.RawMessage {
	def := Default()
	s := objectSchema(rootField(), &def)
	s.Dialect = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "coder settings"
	s.Properties["$schema"] = &schema{Type: "string", Description: "address of this schema, for editors"}
	one := 1.0
	s.Properties[formatKey] = &schema{Type: "integer", Minimum: &one,
		Description: "format of this file (default 1); a program refuses formats newer than its own"}
	s.Properties[writerKey] = &schema{Type: "string",
		Description: "version of coder that the file was written for, shown if the format is too new"}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // strings, numbers and maps always marshal
	}
	return out
}

func objectSchema(f *field, def *Config) *schema {
	s := &schema{Description: f.doc(), Type: "object", Properties: map[string]*schema{}, More: false}
	for _, k := range f.children {
		s.Properties[k.name()] = fieldSchema(k, def)
	}
	if f.catchAll != nil {
		s.More = rulesSchema(f.catchAll, nil)
		for tool, rules := range def.Permission.Tools {
			s.Properties[tool] = rulesSchema(f.catchAll, rules)
		}
	}
	return s
}

func rulesSchema(f *field, def Rules) *schema {
	verdict := &schema{Type: "string", Enum: f.enum()}
	s := &schema{Description: f.doc(), AnyOf: []*schema{verdict, {Type: "object", More: verdict}}}
	if def != nil {
		s.Default = def
	}
	return s
}

var schemaTypes = []string{
	kindBool: "boolean", kindInt: "integer", kindFloat: "number", kindText: "string", kindTextList: "array",
	kindCommand: "array", kindNetwork: "", kindTextMap: "object", kindJSONMap: "object",
}

func fieldSchema(f *field, def *Config) *schema {
	if f.kind == kindObject {
		return objectSchema(f, def)
	}
	s := &schema{Description: f.doc(), Type: schemaTypes[f.kind], Enum: f.enum(), Default: f.valueIn(def).Interface()}
	if least, most, ok := f.valueRange(); ok {
		s.Minimum, s.Maximum = &least, &most
	}
	switch f.kind {
	case kindCommand:
		s.Type, s.AnyOf = "", []*schema{{Type: "string"}, {Type: "array", Items: &schema{Type: "string"}}}
	case kindNetwork:
		s.AnyOf = []*schema{{Type: "boolean"}, {Type: "array", Items: &schema{Type: "string"}}}
	case kindTextList:
		s.Items = &schema{Type: "string"}
	case kindTextMap:
		s.More = &schema{Type: "string"}
	}
	return s
}
