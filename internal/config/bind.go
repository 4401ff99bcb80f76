package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/nearest"

	"github.com/tailscale/hujson"
)

// object applies v to the block f.
func (y *layer) object(f *field, v hujson.Value) {
	if f.path == "provider" && !y.untrusted {
		y.turnTo(f, v)
	}
	y.members(f.path, v, func(name string, m hujson.ObjectMember) {
		kid := f.byName[name]
		switch {
		case kid != nil && kid.kind == object:
			y.object(kid, m.Value)
		case kid != nil && (kid.kind == named || kid.kind == foreign):
			y.byName(kid, m.Value)
		case kid != nil:
			y.single(kid, m.Value)
		case f.rest != nil:
			y.rules(f, name, m.Value)
		case f.path == "" && (name == "$schema" || name == formatKey || name == writerKey):
		default:
			path := Entry(f.path, name)
			y.failAt(m.Name.StartOffset, path, fmt.Sprintf("unknown key %q%s", brief(path), y.root.suggest(f, name)))
		}
	})
}

// members passes each member of v to take, and reports duplicates.
func (y *layer) members(path string, v hujson.Value, take func(name string, m hujson.ObjectMember)) {
	o, err := asObject(v)
	if err != nil {
		y.mistake(v, path, err)
		return
	}
	seen := make(map[string]bool, len(o.Members))
	for _, m := range o.Members {
		if len(y.errs) >= maxErrors {
			return
		}
		name := memberName(m)
		if seen[name] {
			y.failAt(m.Name.StartOffset, Entry(path, name), fmt.Sprintf("key %q appears twice", brief(Entry(path, name))))
			continue
		}
		seen[name] = true
		take(name, m)
	}
}

// mistake reports an error in the value v of the setting at path.
func (y *layer) mistake(v hujson.Value, path string, err error) {
	what := err.Error()
	if path != "" {
		what = brief(path) + ": " + what
	}
	y.failAt(v.StartOffset, path, what)
}

// single sets a setting that has one value.
func (y *layer) single(f *field, v hujson.Value) {
	if y.untrusted && !f.shell() {
		for x := range v.All() {
			if lit, ok := x.Value.(hujson.Literal); ok && lit.Kind() == '"' && hasVariable(lit.String()) {
				y.warn(v.StartOffset, f.path, "it names a variable")
				return
			}
		}
	}
	now, err := y.value(f, v)
	if err != nil {
		y.mistake(v, f.path, err)
		return
	}
	place := f.in(&y.cfg)
	if f.project() == "adds" {
		all := slices.Clone(place.Interface().([]string))
		for _, s := range now.Interface().([]string) {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		now = reflect.ValueOf(all)
	}
	if y.untrusted && f.kind == reach {
		var out []string
		if now, out = narrower(place, now); len(out) > 0 {
			y.warn(v.StartOffset, f.path, "the user's settings do not allow "+strings.Join(out, ", "))
		}
	}
	switch {
	case y.untrusted && reflect.DeepEqual(place.Interface(), now.Interface()):
		return
	case y.untrusted && f.project() != "adds" && !f.mayBecome(place, now):
		y.warn(v.StartOffset, f.path, "")
		return
	case y.project && f.project() == "never":
		y.report.Warnings = append(y.report.Warnings, Warning{
			Origin: y.origin(v.StartOffset), Key: f.path, Text: "ignored: a project may not choose: " + f.path,
		})
		return
	case y.project && f.path == "agents.default" && now.String() == "yolo":
		y.report.Warnings = append(y.report.Warnings, Warning{
			Origin: y.origin(v.StartOffset), Key: f.path, Text: "ignored: a project may not choose yolo: " + f.path,
		})
		return
	}
	if place.Set(now); f.path == "profile" {
		y.chose = true
	}
	y.took(v.StartOffset, f.path)
}

// value reads v as f's Go type.
func (y *layer) value(f *field, v hujson.Value) (reflect.Value, error) {
	lit, isLiteral := v.Value.(hujson.Literal)
	switch {
	case f.kind == texts:
		list, err := y.list(f, v)
		return reflect.ValueOf(list), err
	case f.kind == reach && isLiteral && lit.Kind() == 't':
		return reflect.ValueOf(AllHosts), nil
	case f.kind == reach && isLiteral && lit.Kind() == 'f':
		return reflect.ValueOf(Network(nil)), nil
	case f.kind == reach && !isLiteral:
		list, err := y.list(f, v)
		if err == nil {
			err = checkHosts(list)
		}
		return reflect.ValueOf(Network(list)), err
	case f.kind == command && isLiteral && lit.Kind() == '"':
		return reflect.ValueOf(shellLine(lit.String())), nil
	case f.kind == command:
		list, err := y.list(f, v)
		return reflect.ValueOf(Command(list)), err
	case !isLiteral:
	case f.kind == boolean && (lit.Kind() == 't' || lit.Kind() == 'f'):
		return reflect.ValueOf(lit.Bool()), nil
	case (f.kind == whole || f.kind == decimal) && lit.Kind() == '0':
		const exact = 1 << 53 // 1.28e2 is also a whole number
		n, err := strconv.ParseFloat(string(lit), 64)
		least, most, limited := f.limits()
		switch whole64, notWhole := strconv.Atoi(string(lit)); {
		case err != nil || limited && (n < least || n > most):
		case f.kind == decimal:
			return reflect.ValueOf(n), nil
		case notWhole == nil:
			return reflect.ValueOf(whole64), nil
		case n == math.Trunc(n) && math.Abs(n) <= exact:
			return reflect.ValueOf(int(n)), nil
		}
	case f.kind == text && lit.Kind() == '"':
		s, err := y.text(f, lit)
		return reflect.ValueOf(s), err
	}
	return reflect.Value{}, fmt.Errorf("expected %s, found %s", f.wanted(), found(v))
}

// shellLine returns the command that runs a shell line; an empty line gives an empty command.
func shellLine(line string) Command {
	if strings.TrimSpace(line) == "" {
		return Command{}
	}
	return Command{"/bin/sh", "-c", line}
}

// text reads a string, with its variables expanded, and checks it.
func (y *layer) text(f *field, lit hujson.Literal) (string, error) {
	s, err := y.expanded(f, lit.String())
	if err != nil {
		return "", err
	}
	if enum := f.enum(); enum != nil && !slices.Contains(enum, s) {
		err := fmt.Sprintf("expected %s, found %q", oneOf(enum), brief(s))
		if n := nearest.Of(s, enum); n != "" {
			err += didYouMean(n)
		}
		return "", errors.New(err)
	}
	if f.address() && s != "" && !isAddress(s) {
		return "", fmt.Errorf("expected an address such as https://host/v1, found %q", brief(maskAddress(s)))
	}
	return s, nil
}

// expanded expands the variables in a trusted file's text. Text
// from the environment or the command line stays unchanged.
func (y *layer) expanded(f *field, s string) (string, error) {
	if y.src == nil || y.untrusted || f.shell() {
		return s, nil
	}
	out, used, err := expand(s, y.getenv, y.withheld)
	for _, name := range used {
		if f.secret() || secretName(name) {
			y.report.secretVars = append(y.report.secretVars, name)
		}
	}
	return out, err
}

func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func (y *layer) list(f *field, v hujson.Value) ([]string, error) {
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, fmt.Errorf("expected a list of strings, found %s", found(v))
	}
	list := make([]string, 0, len(a.Elements))
	for _, e := range a.Elements {
		lit, ok := e.Value.(hujson.Literal)
		if !ok || lit.Kind() != '"' {
			return nil, fmt.Errorf("expected a list of strings, found %s in it", found(e))
		}
		s, err := y.expanded(f, lit.String())
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// byName applies v to the entries of f, a setting with free names,
// entry by entry: text, or JSON whose objects are merged key by key.
func (y *layer) byName(f *field, v hujson.Value) {
	if y.untrusted {
		if o, ok := v.Value.(*hujson.Object); !ok || len(o.Members) > 0 {
			y.warn(v.StartOffset, f.path, "")
		}
		return
	}
	all := f.in(&y.cfg).Interface()
	if f.path == mcpServers && y.project { // a project's servers get none of the user's keys
		held := *y
		y = &held
		y.withheld = func(name string) bool { return slices.Contains(KeyVariables(), name) }
	}
	y.members(f.path, v, func(name string, m hujson.ObjectMember) {
		path := Entry(f.path, name)
		if f.path == "profiles" {
			y.profiles[name] = append(y.profiles[name], profile{*y, m.Value})
			y.noteSecrets(m.Value, false)
		}
		over := m.Value.Clone()
		lit, ok := over.Value.(hujson.Literal)
		err := y.expandAll(f, &over)
		switch all := all.(type) {
		case map[string]string:
			if !ok || lit.Kind() != '"' {
				err = fmt.Errorf("expected a string, found %s", found(m.Value))
			} else if err == nil {
				all[name] = over.Value.(hujson.Literal).String()
			}
		case map[string]json.RawMessage:
			if f.path == mcpServers && y.leavesOut(name, over, err, y.origin(m.Value.StartOffset)) {
				return
			}
			if err != nil {
				break
			}
			over.Minimize()
			if f.joins() {
				if y.report.Parts == nil {
					y.report.Parts = make(map[string][]Part)
				}
				y.report.Parts[path] = append(y.report.Parts[path], Part{over.Pack(), y.project})
				all[name] = joinLists(all[name], over.Pack())
			} else {
				all[name] = merge(all[name], over.Pack())
			}
		}
		if err != nil {
			y.mistake(m.Value, path, err)
			return
		}
		y.took(m.Value.StartOffset, path)
	})
}

// expandAll expands the variables in every string in v, but not in names.
func (y *layer) expandAll(f *field, v *hujson.Value) error {
	switch x := v.Value.(type) {
	case hujson.Literal:
		if x.Kind() != '"' || !bytes.Contains(x, []byte("$")) {
			return nil
		}
		s, err := y.expanded(f, x.String())
		v.Value = hujson.String(s)
		return err
	case *hujson.Object:
		for i := range x.Members {
			if err := y.expandAll(f, &x.Members[i].Value); err != nil {
				return err
			}
		}
	case *hujson.Array:
		for i := range x.Elements {
			if err := y.expandAll(f, &x.Elements[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// joinLists returns a list followed by another. If one of the two is not a list, it returns over.
func joinLists(under, over json.RawMessage) json.RawMessage {
	var a, b []json.RawMessage
	if json.Unmarshal(under, &a) != nil || json.Unmarshal(over, &b) != nil {
		return over
	}
	out, err := json.Marshal(append(a, b...))
	if err != nil {
		return over
	}
	return out
}

// merge applies over to under: objects key by key, other values as a whole.
func merge(under, over json.RawMessage) json.RawMessage {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(under, &a) != nil || json.Unmarshal(over, &b) != nil || a == nil || b == nil {
		return over
	}
	for k, v := range b {
		a[k] = merge(a[k], v)
	}
	out, err := json.Marshal(a)
	if err != nil {
		return over
	}
	return out
}

// wanted describes f's valid values.
func (f *field) wanted() string {
	switch f.kind {
	case boolean:
		return "true or false"
	case whole, decimal:
		noun := "a number"
		if f.kind == whole {
			noun = "a whole number"
		}
		least, most, limited := f.limits()
		if !limited {
			return noun
		}
		return fmt.Sprintf("%s from %s to %s", noun, strconv.FormatFloat(least, 'f', -1, 64), strconv.FormatFloat(most, 'f', -1, 64))
	case text:
		if f.enum() != nil {
			return oneOf(f.enum())
		}
		return "a string"
	case texts:
		return "a list of strings"
	case reach:
		return "true, false or a list of hosts"
	case command:
		return "a list of words, or a shell line"
	}
	return "an object"
}

// oneOf lists the values of an enumeration.
func oneOf(values []string) string {
	names := slices.Clone(values)
	for i, n := range names {
		if n == "" {
			names[i] = `""`
		}
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
