package event

import (
	"encoding/json"
	"reflect"
	"slices"

	"coder/internal/core/chat"
)

// A Masker replaces text that must not be saved: in a text, in the strings of a JSON text, and in a text
// that may be JSON. It returns anything else unchanged.
type Masker interface {
	Text(string) string
	JSON([]byte) []byte
	Value(string) string
}

// Mask returns e without what m masks, in every field, including fields added later. It does not
// change pictures, file states, which must be exact to be restored, or data that a provider signed or
// encrypted. Masked reasoning loses its signature.
func Mask(e Event, m Masker) Event {
	if v, changed := maskValue(reflect.ValueOf(e), m); changed {
		return v.Interface().(Event)
	}
	return e
}

// MaskMessage returns a message without what m masks.
func MaskMessage(msg chat.Message, m Masker) chat.Message {
	if v, changed := maskValue(reflect.ValueOf(msg), m); changed {
		return v.Interface().(chat.Message)
	}
	return msg
}

// maskValue returns v without what m masks, and whether it changed. It does not modify what v refers to.
func maskValue(v reflect.Value, m Masker) (reflect.Value, bool) {
	switch v.Kind() {
	case reflect.String:
		text := v.String()
		if clean := m.Text(text); clean != text {
			return reflect.ValueOf(clean).Convert(v.Type()), true
		}
	case reflect.Interface:
		if !v.IsNil() {
			return maskValue(v.Elem(), m)
		}
	case reflect.Pointer:
		if v.IsNil() {
			break
		}
		if clean, changed := maskValue(v.Elem(), m); changed {
			to := reflect.New(v.Type().Elem())
			to.Elem().Set(clean)
			return to, true
		}
	case reflect.Slice:
		return maskSlice(v, m)
	case reflect.Map:
		return maskMap(v, m)
	case reflect.Struct:
		return maskStruct(v, m)
	}
	return v, false
}

func maskSlice(v reflect.Value, m Masker) (reflect.Value, bool) {
	switch v.Type().Elem().Kind() {
	case reflect.Uint8:
		if v.Type() != rawType || v.Len() == 0 {
			return v, false
		}
		raw := v.Bytes()
		clean := m.JSON(raw)
		return reflect.ValueOf(json.RawMessage(clean)), &clean[0] != &raw[0]
	case reflect.String, reflect.Interface, reflect.Struct, reflect.Slice, reflect.Map, reflect.Pointer:
	default:
		return v, false
	}
	var out reflect.Value
	for i := range v.Len() {
		clean, changed := maskValue(v.Index(i), m)
		if !changed {
			continue
		}
		if !out.IsValid() {
			out = reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(out, v)
		}
		out.Index(i).Set(clean)
	}
	if out.IsValid() {
		return out, true
	}
	return v, false
}

func maskMap(v reflect.Value, m Masker) (reflect.Value, bool) {
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	changed := false
	for it := v.MapRange(); it.Next(); {
		key, other := maskValue(it.Key(), m)
		value, also := maskValue(it.Value(), m)
		out.SetMapIndex(key, value)
		changed = changed || other || also
	}
	return out, changed
}

func maskStruct(v reflect.Value, m Masker) (reflect.Value, bool) {
	switch v.Type() {
	case fileStateType, imageType:
		return v, false
	case effectType, reasoningType, toolCallType, toolResultType:
		return maskSpecial(v, m)
	}
	var out reflect.Value
	for i := range v.NumField() {
		if v.Type().Field(i).PkgPath != "" {
			continue
		}
		clean, changed := maskValue(v.Field(i), m)
		if !changed {
			continue
		}
		if !out.IsValid() {
			out = reflect.New(v.Type()).Elem()
			out.Set(v)
		}
		out.Field(i).Set(clean)
	}
	if out.IsValid() {
		return out, true
	}
	return v, false
}

// maskSpecial masks types that need special handling.
func maskSpecial(v reflect.Value, m Masker) (reflect.Value, bool) {
	switch was := v.Interface().(type) {
	case Effect:
		if text := was.String(); m.Text(text) != text {
			_ = was.UnmarshalText([]byte(m.Text(text))) // it accepts anything
			return reflect.ValueOf(was), true
		}
	case chat.Reasoning:
		text, details := m.Text(was.Text), m.JSON(was.Details)
		if text != was.Text || len(details) > 0 && &details[0] != &was.Details[0] &&
			!differsOnlyInOpaque(was.Details, details) {
			return reflect.ValueOf(chat.Reasoning{Text: text, Field: was.Field}), true
		}
	case chat.ToolCall:
		is := was
		is.ID, is.Name, is.Args, is.Broken = m.Text(was.ID), m.Text(was.Name), m.JSON(was.Args), m.Value(was.Broken)
		if is.ID != was.ID || is.Name != was.Name || is.Broken != was.Broken || len(is.Args) > 0 &&
			&is.Args[0] != &was.Args[0] {
			return reflect.ValueOf(is), true
		}
	case chat.ToolResult:
		is := was
		is.CallID, is.Name, is.Text = m.Text(was.CallID), m.Text(was.Name), m.Value(was.Text)
		return reflect.ValueOf(is), is != was
	}
	return v, false
}

// differsOnlyInOpaque reports whether two JSON texts differ only in what a provider signed or encrypted, which is
// random text.
func differsOnlyInOpaque(a, b json.RawMessage) bool {
	var was, is any
	if json.Unmarshal(a, &was) != nil || json.Unmarshal(b, &is) != nil {
		return false
	}
	return reflect.DeepEqual(dropOpaque(was), dropOpaque(is))
}

func dropOpaque(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			switch name {
			case "signature", "data", "encrypted_content", "thought_signature", "thoughtSignature", "id":
				delete(v, name)
			default:
				v[name] = dropOpaque(v[name])
			}
		}
	case []any:
		for i := range v {
			v[i] = dropOpaque(v[i])
		}
	}
	return v
}

var (
	rawType        = reflect.TypeFor[json.RawMessage]()
	fileStateType  = reflect.TypeFor[FileState]()
	effectType     = reflect.TypeFor[Effect]()
	imageType      = reflect.TypeFor[chat.Image]()
	reasoningType  = reflect.TypeFor[chat.Reasoning]()
	toolCallType   = reflect.TypeFor[chat.ToolCall]()
	toolResultType = reflect.TypeFor[chat.ToolResult]()
)

// MapFileStates is e with what f makes of each state of a file that a call found first, or changed.
func MapFileStates(e Event, f func(FileState) FileState) Event {
	switch e := e.(type) {
	case ToolCallRequested:
		e.Before = slices.Clone(e.Before)
		for i, s := range e.Before {
			e.Before[i] = f(s)
		}
		return e
	case ToolCallCompleted:
		e.Changes = slices.Clone(e.Changes)
		for i, c := range e.Changes {
			e.Changes[i] = FileChange{Before: f(c.Before), After: f(c.After), Doubt: c.Doubt}
		}
		return e
	}
	return e
}
