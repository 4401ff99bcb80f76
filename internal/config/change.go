package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"coder/internal/core/message"

	"github.com/tailscale/hujson"
)

// SetText is [SetValue] with the value as users type it: plain text,
// true or 5 as in a file, and lists as JSON or separated by commas.
func SetText(content []byte, key, text string) ([]byte, error) {
	v, err := ParseValue(key, text)
	if err != nil {
		return nil, err
	}
	return SetValue(content, key, v)
}

// ParseValue returns the value of a setting in text.
func ParseValue(key, text string) (any, error) {
	root := rootField()
	f, words, ok := root.find(key)
	if !ok {
		return nil, errors.New(unknownKeyMessage(root, f, words, key))
	}
	v, err := toLiteral(f, words, text)
	if list := strings.TrimSpace(text); err == nil && strings.HasPrefix(list, "[") &&
		(f.kind == kindTextList || f.kind == kindCommand || f.kind == kindNetwork) {
		v, err = hujson.Parse([]byte(list))
	}
	if err != nil {
		return nil, message.Errorf("%s: %w", key, err)
	}
	v.Standardize()
	return json.RawMessage(v.Pack()), nil
}

// RemoveKey removes one key from the text of a settings file and leaves the rest
// of it, including comments, unchanged. It reports whether the key existed.
func RemoveKey(content []byte, key string) (out []byte, was bool, err error) {
	root := rootField()
	if f, words, ok := root.find(key); !ok {
		return nil, false, errors.New(unknownKeyMessage(root, f, words, key))
	}
	content, hadBOM := bytes.CutPrefix(content, utf8BOM)
	src, err := parseConfig("settings", content)
	if err != nil {
		return nil, false, err
	}
	e := &editor{content: content}
	out, was = e.removeMember(src.root, splitKey(key))
	if hadBOM {
		out = append(bytes.Clone(utf8BOM), out...)
	}
	return out, was, nil
}

// removeMember removes the member at words below v.
func (e *editor) removeMember(v hujson.Value, words []string) ([]byte, bool) {
	o, err := toObject(v)
	if err != nil {
		return e.content, false
	}
	i := slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return memberName(m) == words[0] })
	if i < 0 {
		return e.content, false
	}
	m := o.Members[i]
	if len(words) > 1 {
		return e.removeMember(m.Value, words[1:])
	}
	from, to := m.Name.StartOffset, m.Value.EndOffset
	comma := to + len(m.Value.AfterExtra)
	text := e.content
	switch {
	case text[comma] == ',' && comma == to:
		to++
	case text[comma] == ',': // a comment precedes it
		text = slices.Concat(text[:comma], text[comma+1:])
	case i > 0: // the preceding comma is not needed any more
		before := o.Members[i-1].Value
		at := before.EndOffset + len(before.AfterExtra)
		text = slices.Concat(text[:at], text[at+1:])
		from, to = from-1, to-1
	}
	start := bytes.LastIndexByte(text[:from], '\n') + 1
	end := len(text)
	if n := bytes.IndexByte(text[to:], '\n'); n >= 0 {
		end = to + n + 1
	}
	switch alone := len(bytes.TrimSpace(text[start:from])) == 0; {
	case alone && len(bytes.TrimSpace(text[to:end])) == 0:
		from, to = start, end
	case !alone && i == len(o.Members)-1:
		from = len(bytes.TrimRight(text[:from], " \t"))
	default:
		to += len(text[to:]) - len(bytes.TrimLeft(text[to:], " \t"))
	}
	return slices.Concat(text[:from], text[to:]), true
}

// CheckProject returns an error if a project's settings must not set key to a value,
// regardless of who writes them. For an untrusted project, the error says what would be ignored.
func (r Report) CheckProject(key string, value any, trusted bool) error {
	l := newLoader(Options{})
	l.cfg = r.cfg
	f, words, ok := l.root.find(key)
	if !ok {
		return errors.New(unknownKeyMessage(l.root, f, words, key))
	}
	v, err := toLiteral(f, words, value)
	if err != nil {
		return message.Errorf("%s: %w", key, err)
	}
	y := layer{loader: l, name: "value", project: true, untrusted: !trusted, minRank: l.strictestRank()}
	y.applyAt(key, v)
	switch {
	case len(l.errs) > 0:
		return errors.Join(l.errs...)
	case len(l.report.Warnings) > 0:
		why := strings.TrimPrefix(l.report.Warnings[0].Text, "ignored: ")
		return errors.New(strings.TrimPrefix(why, "ignored in an untrusted project: "))
	}
	return nil
}

// SettingInfo describes a setting to the user.
type SettingInfo struct {
	Key, Doc    string
	ValidValues string   // a description of its valid values
	Values      []string // all valid values, if they are few
	Secret      bool
}

// DescribeKey describes the setting of a key, or of an entry in a setting.
func DescribeKey(key string) (SettingInfo, error) {
	root := rootField()
	f, words, ok := root.find(key)
	if !ok {
		return SettingInfo{}, errors.New(unknownKeyMessage(root, f, words, key))
	}
	a := SettingInfo{Key: key, Doc: f.doc(), ValidValues: f.describeValues(), Values: f.enum(), Secret: f.isSecret()}
	if f.kind == kindBool {
		a.Values = []string{"true", "false"}
	}
	if f.kind == kindRules {
		a.ValidValues = listValues(f.enum())
	}
	return a, nil
}

// ParseWritten returns the settings in a file as written, without defaults.
func ParseWritten(content []byte) (map[string]any, error) {
	all := make(map[string]any)
	content = bytes.TrimPrefix(content, utf8BOM)
	if len(bytes.TrimSpace(content)) == 0 {
		return all, nil
	}
	src, err := parseConfig("settings", content)
	if err != nil {
		return nil, err
	}
	src.root.Standardize()
	return all, json.Unmarshal(src.root.Pack(), &all)
}

// KeyWords returns the words of a key.
func KeyWords(key string) []string { return splitKey(key) }
