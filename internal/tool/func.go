package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"coder/internal/core/message"

	"github.com/go-json-experiment/json/jsontext"
)

// Func is a Tool made from typed functions. In must be a struct; its fields and their tags give the
// schema: `json` the name (omitzero or omitempty makes it optional), `doc` the description, `enum` the
// allowed values separated by "|", `also` other names that models use for the argument. A `hidden`
// argument is accepted but not advertised.
type Func[In any] struct {
	Name, Doc string
	Aliases   []Alias
	Plan      func(context.Context, In) (Plan, error)
	Do        func(context.Context, In, io.Writer) (Result, error)
	// PlanRun replaces Plan and Do if planning already finds what the work needs.
	PlanRun func(context.Context, In) (Plan, Run, error)
}

// Run does the work of a call: see [Call].
type Run func(ctx context.Context, out io.Writer) (Result, error)

// Spec describes f to the model.
func (f Func[In]) Spec() Spec {
	a := cachedArguments(reflect.TypeFor[In]())
	return Spec{Name: f.Name, Doc: strings.TrimSpace(f.Doc), Class: ClassOf(f.Name), Schema: a.schema, Aliases: f.Aliases,
		properties: a.properties, arguments: a}
}

// Prepare decodes args and plans the call.
func (f Func[In]) Prepare(ctx context.Context, args json.RawMessage) (Call, error) {
	var in In
	if err := cachedArguments(reflect.TypeFor[In]()).decode(args, &in); err != nil {
		return nil, &ArgumentError{f.Name, err}
	}
	c := plannedCall{run: func(ctx context.Context, out io.Writer) (Result, error) { return f.Do(ctx, in, out) }}
	var err error
	if f.PlanRun != nil {
		c.plan, c.run, err = f.PlanRun(ctx, in)
	} else {
		c.plan, err = f.Plan(ctx, in)
	}
	if err != nil && c.plan.Title != "" {
		err = &planError{c.plan.Title, err}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Arguments decodes the arguments of a call that is on record.
func Arguments[In any](args json.RawMessage) (in In, err error) {
	err = cachedArguments(reflect.TypeFor[In]()).decode(args, &in)
	return in, err
}

// planError is the error of a call that cannot be planned, with the call's title.
type planError struct {
	title string
	err   error
}

func (e *planError) Error() string { return e.err.Error() }
func (e *planError) Unwrap() error { return e.err }

// WithTitle returns the error of a call that does not run, with the call's title.
func WithTitle(title string, err error) error { return &planError{title, err} }

// ErrorTitle returns the title in the error of a call that could not be planned, or "".
func ErrorTitle(err error) string {
	var e *planError
	if errors.As(err, &e) {
		return e.title
	}
	return ""
}

// ArgumentError is the error of a call with wrong arguments for its tool.
type ArgumentError struct {
	Tool string
	Err  error
}

func (e *ArgumentError) Error() string { return e.Tool + ": " + e.Err.Error() }
func (e *ArgumentError) Unwrap() error { return e.Err }

type plannedCall struct {
	plan Plan
	run  Run
}

func (c plannedCall) Plan() Plan { return c.plan }

func (c plannedCall) Run(ctx context.Context, out io.Writer) (Result, error) { return c.run(ctx, out) }

// arguments describes a tool's arguments as given by a struct type.
type arguments struct {
	schema     json.RawMessage
	properties                      // those advertised
	names      func() argumentNames // built at the first call
}

// argumentNames are the accepted names of arguments.
type argumentNames struct {
	names   []string          // the tool's own names
	visible []string          // without the hidden ones
	aliases map[string]string // folded other name → name
	enums   map[string][]string
}

var argumentsCache sync.Map // reflect.Type → *arguments

func cachedArguments(t reflect.Type) *arguments {
	if a, ok := argumentsCache.Load(t); ok {
		return a.(*arguments)
	}
	a, _ := argumentsCache.LoadOrStore(t, parseArguments(t))
	return a.(*arguments)
}

func parseArguments(t reflect.Type) *arguments {
	a := &arguments{names: sync.OnceValue(func() argumentNames { return parseArgumentNames(t) })}
	for f := range t.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Tag.Get("hidden") == "" {
			a.all = append(a.all, property{name, appendSchema(nil, f.Type, f.Tag)})
		}
		if !strings.Contains(opts, "omit") {
			a.required = append(a.required, name)
		}
	}
	a.schema = a.properties.schema()
	return a
}

func parseArgumentNames(t reflect.Type) argumentNames {
	s := argumentNames{aliases: make(map[string]string), enums: make(map[string][]string)}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		s.names = append(s.names, name)
		if f.Tag.Get("hidden") == "" {
			s.visible = append(s.visible, name)
		}
		s.aliases[fold(name)] = name
		for _, other := range strings.Fields(f.Tag.Get("also")) {
			s.aliases[fold(other)] = name
		}
		if e := f.Tag.Get("enum"); e != "" {
			s.enums[name] = strings.Split(e, "|")
		}
	}
	return s
}

// fold makes file_path, filePath and FilePath one name.
func fold(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

// NormalizeArgs returns args under the tool's own names; unknown arguments stay unchanged.
func (s Spec) NormalizeArgs(args json.RawMessage) json.RawMessage {
	if s.arguments == nil {
		return args
	}
	named, renamed, err := s.arguments.normalize(args)
	if err != nil || !renamed {
		return args
	}
	b, err := json.Marshal(named)
	if err != nil {
		return args
	}
	return b
}

// normalize parses arguments by the tool's own names, and reports whether any had another name.
func (a *arguments) normalize(raw json.RawMessage) (named map[string]json.RawMessage, renamed bool, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, false, errors.New("arguments must be a JSON object")
	}
	names := a.names()
	named = make(map[string]json.RawMessage, len(given))
	for k, v := range given {
		if bytes.Equal(v, []byte("null")) {
			continue // null counts as absent under any name
		}
		name := k
		if !slices.Contains(names.names, k) {
			var known bool
			if name, known = names.aliases[fold(k)]; !known {
				if len(names.visible) == 0 {
					return nil, false, message.Errorf("unknown argument %q; it takes none", k)
				}
				return nil, false, message.Errorf("unknown argument %q; it takes %s", k, strings.Join(names.visible,
					", "))
			}
			renamed = true
		}
		if before, twice := named[name]; twice {
			var x, y any
			if json.Unmarshal(before, &x) != nil || json.Unmarshal(v, &y) != nil || !reflect.DeepEqual(x, y) {
				return nil, false, message.Errorf("argument %q is given twice", name)
			}
		}
		named[name] = v
	}
	return named, renamed, nil
}

// decode decodes raw into in. Its error tells the model what to correct.
func (a *arguments) decode(raw json.RawMessage, in any) error {
	named, _, err := a.normalize(raw)
	if err != nil {
		return err
	}
	names := a.names()
	for _, name := range a.required {
		if _, ok := named[name]; !ok {
			return message.Errorf("argument %q is missing", name)
		}
	}
	for name, allowed := range names.enums {
		var s string
		if raw, ok := named[name]; ok && (json.Unmarshal(raw, &s) != nil || !slices.Contains(allowed, s)) {
			return message.Errorf("argument %q must be one of %s", name, strings.Join(allowed, ", "))
		}
	}
	for f, fv := range reflect.ValueOf(in).Elem().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		raw, ok := named[name]
		if !ok || json.Unmarshal(raw, fv.Addr().Interface()) == nil {
			continue
		}
		if s, ok := coerce(raw, f.Type.Kind()); !ok || json.Unmarshal(s, fv.Addr().Interface()) != nil {
			typ := schemaType(f.Type)
			if strings.ContainsRune("aeiou", rune(typ[0])) {
				return message.Errorf("argument %q must be %s", name, "an "+typ)
			}
			return message.Errorf("argument %q must be %s", name, "a "+typ)
		}
	}
	return nil
}

// coerce returns the probable meaning of a value with the wrong type: the
// text of a string as a value, a number such as 5.0 as an integer.
func coerce(raw json.RawMessage, kind reflect.Kind) (json.RawMessage, bool) {
	if kind == reflect.String {
		return nil, false
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		raw = json.RawMessage(strings.TrimSpace(s))
	}
	switch kind {
	case reflect.Bool:
		return bytes.ToLower(raw), true
	case reflect.Int, reflect.Int64:
		const exact = 1 << 53 // beyond this, float64 skips integers
		if f, err := strconv.ParseFloat(string(raw), 64); err == nil && f == math.Trunc(f) && math.Abs(f) < exact {
			return strconv.AppendInt(nil, int64(f), 10), true
		}
	}
	return raw, true
}

// appendSchema appends the JSON Schema of t and of the field
// of that type, with its keys in alphabetical order.
func appendSchema(b []byte, t reflect.Type, field reflect.StructTag) []byte {
	b = append(b, '{')
	if t.Kind() == reflect.Map {
		b = append(appendSchema(append(b, `"additionalProperties":`...), t.Elem(), ""), ',')
	}
	if doc := field.Get("doc"); doc != "" {
		b = append(appendQuoted(append(b, `"description":`...), doc), ',')
	}
	if e := field.Get("enum"); e != "" {
		b = append(appendList(append(b, `"enum":`...), strings.Split(e, "|")), ',')
	}
	switch t.Kind() {
	case reflect.Slice:
		b = append(appendSchema(append(b, `"items":`...), t.Elem(), ""), ',')
	case reflect.Struct: // closed by decode, which reports unknown members
		b = append(cachedArguments(t).properties.appendJSON(b), ',')
	}
	return append(append(append(b, `"type":"`...), schemaType(t)...), `"}`...)
}

// schemaType returns the JSON Schema name of t.
func schemaType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.String:
		return "string"
	case reflect.Slice:
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	}
	panic("tool: no schema for " + t.String()) // found at start-up by NewSet
}

// properties are the JSON Schema of an object: its properties, and the required ones.
type properties struct {
	all      []property
	required []string
}

type property struct {
	name   string
	schema []byte
}

// schema returns the schema of the object, its properties in alphabetical order.
func (p properties) schema() json.RawMessage {
	slices.SortFunc(p.all, func(x, y property) int { return cmp.Compare(x.name, y.name) })
	return append(p.appendJSON([]byte{'{'}), `,"type":"object"}`...)
}

func (p properties) appendJSON(b []byte) []byte {
	b = append(b, `"properties":{`...)
	for i, one := range p.all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(appendQuoted(b, one.name), ':'), one.schema...)
	}
	b = append(b, '}')
	if len(p.required) > 0 {
		b = appendList(append(b, `,"required":`...), p.required)
	}
	return b
}

func appendList(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(b, s)
	}
	return append(b, ']')
}

func appendQuoted(b []byte, s string) []byte {
	b, err := jsontext.AppendQuote(b, s)
	if err != nil {
		panic("tool: a schema is not UTF-8: " + s) // found at start-up by NewSet
	}
	return b
}
