package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// profileLayer is one layer's definition of a profile, with that layer.
type profileLayer struct {
	layer layer
	value hujson.Value
}

// useProfile applies the profile that y chose, if any, to the settings
// so far. A profile is as strong as the layer that chooses it.
func (y *layer) useProfile() {
	name := y.cfg.Profile
	if !y.choseProfile || name == "" {
		return
	}
	y.choseProfile = false
	told := y.profiles[name]
	if len(told) == 0 {
		why := fmt.Sprintf("unknown profile %q", shorten(name))
		if names := slices.Sorted(maps.Keys(y.profiles)); len(names) > 0 {
			why = fmt.Sprintf("unknown profile %q; use one of: %s", shorten(name), strings.Join(names, ", "))
		}
		y.addErrorAt(0, "profile", why)
		return
	}
	f := y.root.childByName["provider"]
	if slices.ContainsFunc(told, func(p profileLayer) bool { return hasMember(p.value, "preset", "base_url", "kind") }) {
		y.resetEndpoint()
	}
	for _, p := range told {
		p.layer.applyObject(f, p.value)
	}
}

// recordSecretVars records the variables in a profile that hold secrets, whether the profile is used or not.
func (y *layer) recordSecretVars(v hujson.Value, secret bool) {
	switch x := v.Value.(type) {
	case *hujson.Object:
		for _, m := range x.Members {
			y.recordSecretVars(m.Value, secret || memberName(m) == "headers" || isSecretName(memberName(m)))
		}
	case hujson.Literal:
		if x.Kind() != '"' {
			return
		}
		_, refs := splitReferences(x.String())
		for _, ref := range refs {
			if secret || isSecretName(ref.name) {
				y.report.secretVars = append(y.report.secretVars, ref.name)
			}
		}
	}
}

// hasMember reports whether the object v has one of these members.
func hasMember(v hujson.Value, members ...string) bool {
	o, err := toObject(v)
	return err == nil && slices.ContainsFunc(o.Members, func(m hujson.ObjectMember) bool {
		return slices.Contains(members,
			memberName(m))
	})
}

// switchPreset drops the earlier layers' endpoint if v, a value of the block f, names another preset.
func (y *layer) switchPreset(f *field, v hujson.Value) {
	o, err := toObject(v)
	if err != nil {
		return // the error is reported where v is read
	}
	for _, m := range o.Members {
		lit, ok := m.Value.Value.(hujson.Literal)
		if memberName(m) != "preset" || !ok || lit.Kind() != '"' {
			continue
		}
		if s, err := y.expandText(f.childByName["preset"], lit.String()); err == nil && s != y.cfg.Provider.Preset {
			y.resetEndpoint()
		}
	}
}

// resetEndpoint resets the settings for one endpoint: its key and its models do not apply to another.
func (l *loader) resetEndpoint() {
	fresh := Default()
	l.root.childByName["provider"].walk(func(f *field) {
		if f.tag.Get("endpoint") != "yes" {
			return
		}
		f.valueIn(&l.cfg).Set(f.valueIn(&fresh))
		maps.DeleteFunc(l.report.origins, func(key string, _ Origin) bool {
			return key == f.path ||
				strings.HasPrefix(key, f.path+".")
		})
	})
}

// ForgetEndpoint resets a settings file's endpoint and profile to the defaults: no setting, above all no
// key, may reach another endpoint. The rest of the file stays unchanged. gone lists the reset settings.
func ForgetEndpoint(content []byte) (text []byte, gone []string, err error) {
	src, err := parseConfig("settings", content)
	if err != nil {
		return nil, nil, err
	}
	fresh, root := Default(), rootField()
	forget := func(f *field, in hujson.Value) {
		if err == nil && hasMember(in, f.name()) {
			content, err = SetValue(content, f.path, f.valueIn(&fresh).Interface())
			gone = append(gone, f.path)
		}
	}
	forget(root.childByName["profile"], src.root)
	o, notObject := toObject(src.root)
	if notObject != nil {
		return nil, nil, notObject
	}
	for _, m := range o.Members {
		if memberName(m) != "provider" {
			continue
		}
		for _, f := range root.childByName["provider"].children {
			if f.tag.Get("endpoint") == "yes" {
				forget(f, m.Value)
			}
		}
	}
	return content, gone, err
}
