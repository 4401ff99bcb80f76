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

	"coder/internal/core/message"
	"coder/internal/core/nearest"

	"github.com/tailscale/hujson"
)

// applyObject applies v to the block f.
func (y *layer) applyObject(f *field, v hujson.Value) {
	if f.path == "provider" && !y.untrusted {
		y.switchPreset(f, v)
	}
	y.eachMember(f.path, v, func(name string, m hujson.ObjectMember) {
		kid := f.childByName[name]
		switch {
		case kid != nil && kid.kind == kindObject:
			y.applyObject(kid, m.Value)
		case kid != nil && (kid.kind == kindTextMap || kid.kind == kindJSONMap):
			y.applyEntries(kid, m.Value)
		case kid != nil:
			y.setValue(kid, m.Value)
		case f.catchAll != nil:
			y.applyRules(f, name, m.Value)
		case f.path == "" && (name == "$schema" || name == formatKey || name == writerKey):
		default:
			path := EntryKey(f.path, name)
			y.addErrorAt(m.Name.StartOffset, path, fmt.Sprintf("unknown key %q%s", shorten(path), y.root.suggestKey(f, name)))
		}
	})
}

// eachMember passes each member of v to take, and reports duplicates.
func (y *layer) eachMember(path string, v hujson.Value, take func(name string, m hujson.ObjectMember)) {
	o, err := toObject(v)
	if err != nil {
		y.addValueError(v, path, err)
		return
	}
	seen := make(map[string]bool, len(o.Members))
	for _, m := range o.Members {
		if len(y.errs) >= maxErrors {
			return
		}
		name := memberName(m)
		if seen[name] {
			y.addErrorAt(m.Name.StartOffset, EntryKey(path, name),
				fmt.Sprintf("key %q appears twice", shorten(EntryKey(path, name))))
			continue
		}
		seen[name] = true
		take(name, m)
	}
}

// addValueError reports an error in the value v of the setting at path.
func (y *layer) addValueError(v hujson.Value, path string, err error) {
	what := err.Error()
	if path != "" {
		what = shorten(path) + ": " + what
	}
	y.addErrorAt(v.StartOffset, path, what)
}

// setValue sets a setting that has one value.
func (y *layer) setValue(f *field, v hujson.Value) {
	if y.untrusted && !f.isShell() && namesVariable(v) {
		y.addWarning(v.StartOffset, f.path, "names a variable")
		return
	}
	now, err := y.decodeValue(f, v)
	if err != nil {
		y.addValueError(v, f.path, err)
		return
	}
	place := f.valueIn(&y.cfg)
	if f.projectRule() == "adds" {
		now = addTexts(place, now)
	}
	if y.untrusted && f.kind == kindNetwork {
		var out []string
		if now, out = intersectNetworks(place, now); len(out) > 0 {
			y.addWarning(v.StartOffset, f.path, "the user's settings do not allow "+strings.Join(out, ", "))
		}
	}
	if y.isIgnored(f, v.StartOffset, place, now) {
		return
	}
	if place.Set(now); f.path == "profile" {
		y.choseProfile = true
	}
	y.recordOrigin(v.StartOffset, f.path)
}

// isIgnored reports whether the layer may not change a setting from place to now, or does not change it. A warning
// says which of its choices are ignored.
func (y *layer) isIgnored(f *field, offset int, place, now reflect.Value) bool {
	why := ""
	switch {
	case y.untrusted && reflect.DeepEqual(place.Interface(), now.Interface()):
		return true
	case y.untrusted && f.projectRule() != "adds" && !f.allowsChange(place, now):
		y.addWarning(offset, f.path, "")
		return true
	case y.project && f.projectRule() == "never":
		why = "ignored: a project may not choose: " + f.path
	case y.project && f.path == "agents.default" && now.String() == "yolo":
		why = "ignored: a project may not choose yolo: " + f.path
	default:
		return false
	}
	y.report.Warnings = append(y.report.Warnings, Warning{Origin: y.originAt(offset), Key: f.path, Text: why})
	return true
}

// namesVariable reports whether a string in v names a variable.
func namesVariable(v hujson.Value) bool {
	for x := range v.All() {
		if lit, ok := x.Value.(hujson.Literal); ok && lit.Kind() == '"' && hasVariable(lit.String()) {
			return true
		}
	}
	return false
}

// addTexts returns the texts of a list and those of another that are not in it.
func addTexts(list, more reflect.Value) reflect.Value {
	all := slices.Clone(list.Interface().([]string))
	for _, s := range more.Interface().([]string) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return reflect.ValueOf(all)
}

// decodeValue reads v as f's Go type.
func (y *layer) decodeValue(f *field, v hujson.Value) (reflect.Value, error) {
	lit, isLiteral := v.Value.(hujson.Literal)
	isBool := isLiteral && (lit.Kind() == 't' || lit.Kind() == 'f')
	switch {
	case f.kind == kindTextList:
		list, err := y.decodeList(f, v)
		return reflect.ValueOf(list), err
	case f.kind == kindNetwork && (isBool || !isLiteral):
		network, err := y.decodeNetwork(f, v)
		return reflect.ValueOf(network), err
	case f.kind == kindCommand && isLiteral && lit.Kind() == '"':
		return reflect.ValueOf(shellCommand(lit.String())), nil
	case f.kind == kindCommand:
		list, err := y.decodeList(f, v)
		return reflect.ValueOf(Command(list)), err
	case f.kind == kindBool && isBool:
		return reflect.ValueOf(lit.Bool()), nil
	case (f.kind == kindInt || f.kind == kindFloat) && isLiteral && lit.Kind() == '0':
		if n, ok := f.decodeNumber(string(lit)); ok {
			return n, nil
		}
	case f.kind == kindText && isLiteral && lit.Kind() == '"':
		s, err := y.decodeText(f, lit)
		return reflect.ValueOf(s), err
	}
	return reflect.Value{}, message.Errorf("expected %s, found %s", f.describeValues(), describeFound(v))
}

// decodeNetwork reads true, false or a list of hosts.
func (y *layer) decodeNetwork(f *field, v hujson.Value) (Network, error) {
	if lit, ok := v.Value.(hujson.Literal); ok {
		if lit.Bool() {
			return AllHosts, nil
		}
		return nil, nil
	}
	list, err := y.decodeList(f, v)
	if err == nil {
		err = checkHosts(list)
	}
	return Network(list), err
}

// decodeNumber reads a number as f's Go type, if it is one and within f's range.
func (f *field) decodeNumber(text string) (number reflect.Value, ok bool) {
	const exact = 1 << 53 // 1.28e2 is also a whole number
	n, err := strconv.ParseFloat(text, 64)
	least, most, limited := f.valueRange()
	if err != nil || limited && (n < least || n > most) {
		return number, false
	}
	if f.kind == kindFloat {
		return reflect.ValueOf(n), true
	}
	if whole, err := strconv.Atoi(text); err == nil {
		return reflect.ValueOf(whole), true
	}
	return reflect.ValueOf(int(n)), n == math.Trunc(n) && math.Abs(n) <= exact
}

// shellCommand returns the command that runs a shell line; an empty line gives an empty command.
func shellCommand(line string) Command {
	if strings.TrimSpace(line) == "" {
		return Command{}
	}
	return Command{"/bin/sh", "-c", line}
}

// decodeText reads a string, with its variables expanded, and checks it.
func (y *layer) decodeText(f *field, lit hujson.Literal) (string, error) {
	s, err := y.expandText(f, lit.String())
	if err != nil {
		return "", err
	}
	if enum := f.enum(); enum != nil && !slices.Contains(enum, s) {
		err := fmt.Sprintf("expected %s, found %q", listValues(enum), shorten(s))
		if n := nearest.Find(s, enum); n != "" {
			err += didYouMean(n)
		}
		return "", errors.New(err)
	}
	if f.isAddress() && s != "" && !isAddress(s) {
		return "", message.Errorf("expected an address such as https://host/v1, found %q", shorten(maskAddress(s)))
	}
	return s, nil
}

// expandText expands the variables in a trusted file's text. Text
// from the environment or the command line stays unchanged.
func (y *layer) expandText(f *field, s string) (string, error) {
	if y.source == nil || y.untrusted || f.isShell() {
		return s, nil
	}
	out, used, err := expandVars(s, y.getenv, y.isWithheld)
	for _, name := range used {
		if f.isSecret() || isSecretName(name) {
			y.report.secretVars = append(y.report.secretVars, name)
		}
	}
	return out, err
}

func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func (y *layer) decodeList(f *field, v hujson.Value) ([]string, error) {
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, message.Errorf("expected a list of strings, found %s", describeFound(v))
	}
	list := make([]string, 0, len(a.Elements))
	for _, e := range a.Elements {
		lit, ok := e.Value.(hujson.Literal)
		if !ok || lit.Kind() != '"' {
			return nil, message.Errorf("expected a list of strings, found %s in it", describeFound(e))
		}
		s, err := y.expandText(f, lit.String())
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// applyEntries applies v to the entries of f, a setting with free names,
// entry by entry: text, or JSON whose objects are merged key by key.
func (y *layer) applyEntries(f *field, v hujson.Value) {
	if y.untrusted {
		if o, ok := v.Value.(*hujson.Object); !ok || len(o.Members) > 0 {
			y.addWarning(v.StartOffset, f.path, "")
		}
		return
	}
	all := f.valueIn(&y.cfg).Interface()
	if f.path == mcpServers && y.project { // a project's servers get none of the user's keys
		held := *y
		y = &held
		y.isWithheld = func(name string) bool { return slices.Contains(KeyVariables(), name) }
	}
	y.eachMember(f.path, v, func(name string, m hujson.ObjectMember) {
		path := EntryKey(f.path, name)
		if f.path == "profiles" {
			y.profiles[name] = append(y.profiles[name], profileLayer{*y, m.Value})
			y.recordSecretVars(m.Value, false)
		}
		over := m.Value.Clone()
		lit, ok := over.Value.(hujson.Literal)
		err := y.expandStrings(f, &over)
		switch all := all.(type) {
		case map[string]string:
			if !ok || lit.Kind() != '"' {
				err = message.Errorf("expected a string, found %s", describeFound(m.Value))
			} else if err == nil {
				all[name] = over.Value.(hujson.Literal).String()
			}
		case map[string]json.RawMessage:
			if f.path == mcpServers && y.skipServer(name, over, err, y.originAt(m.Value.StartOffset)) {
				return
			}
			if err != nil {
				break
			}
			over.Minimize()
			if f.joinsLayers() {
				if y.report.Parts == nil {
					y.report.Parts = make(map[string][]Part)
				}
				y.report.Parts[path] = append(y.report.Parts[path], Part{over.Pack(), y.project})
				all[name] = joinLists(all[name], over.Pack())
			} else {
				all[name] = mergeJSON(all[name], over.Pack())
			}
		}
		if err != nil {
			y.addValueError(m.Value, path, err)
			return
		}
		y.recordOrigin(m.Value.StartOffset, path)
	})
}

// expandStrings expands the variables in every string in v, but not in names.
func (y *layer) expandStrings(f *field, v *hujson.Value) error {
	switch x := v.Value.(type) {
	case hujson.Literal:
		if x.Kind() != '"' || !bytes.Contains(x, []byte("$")) {
			return nil
		}
		s, err := y.expandText(f, x.String())
		v.Value = hujson.String(s)
		return err
	case *hujson.Object:
		for i := range x.Members {
			if err := y.expandStrings(f, &x.Members[i].Value); err != nil {
				return err
			}
		}
	case *hujson.Array:
		for i := range x.Elements {
			if err := y.expandStrings(f, &x.Elements[i]); err != nil {
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

// mergeJSON applies over to under: objects key by key, other values as a whole.
func mergeJSON(under, over json.RawMessage) json.RawMessage {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(under, &a) != nil || json.Unmarshal(over, &b) != nil || a == nil || b == nil {
		return over
	}
	for k, v := range b {
		a[k] = mergeJSON(a[k], v)
	}
	out, err := json.Marshal(a)
	if err != nil {
		return over
	}
	return out
}

// describeValues describes f's valid values.
func (f *field) describeValues() string {
	switch f.kind {
	case kindBool:
		return "true or false"
	case kindInt, kindFloat:
		noun := "a number"
		if f.kind == kindInt {
			noun = "a whole number"
		}
		least, most, limited := f.valueRange()
		if !limited {
			return noun
		}
		return fmt.Sprintf("%s from %s to %s", noun, strconv.FormatFloat(least, 'f', -1, 64),
			strconv.FormatFloat(most, 'f', -1, 64))
	case kindText:
		if f.enum() != nil {
			return listValues(f.enum())
		}
		return "a string"
	case kindTextList:
		return "a list of strings"
	case kindNetwork:
		return "true, false or a list of hosts"
	case kindCommand:
		return "a list of words, or a shell line"
	}
	return "an object"
}

// listValues lists the values of an enumeration.
func listValues(values []string) string {
	names := slices.Clone(values)
	for i, n := range names {
		if n == "" {
			names[i] = `""`
		}
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
