package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// profile is one layer's definition of a profile, with that layer.
type profile struct {
	told  layer
	value hujson.Value
}

// useProfile applies the profile that y chose, if any, to the settings
// so far. A profile is as strong as the layer that chooses it.
func (y *layer) useProfile() {
	name := y.cfg.Profile
	if !y.chose || name == "" {
		return
	}
	y.chose = false
	told := y.profiles[name]
	if len(told) == 0 {
		why := fmt.Sprintf("unknown profile %q", brief(name))
		if names := slices.Sorted(maps.Keys(y.profiles)); len(names) > 0 {
			why = fmt.Sprintf("unknown profile %q; use one of: %s", brief(name), strings.Join(names, ", "))
		}
		y.failAt(0, "profile", why)
		return
	}
	f := y.root.byName["provider"]
	if slices.ContainsFunc(told, func(p profile) bool { return names(p.value, "preset", "base_url", "kind") }) {
		y.leaveEndpoint()
	}
	for _, p := range told {
		p.told.object(f, p.value)
	}
}

// noteSecrets records the variables in a profile that hold secrets, whether the profile is used or not.
func (y *layer) noteSecrets(v hujson.Value, secret bool) {
	switch x := v.Value.(type) {
	case *hujson.Object:
		for _, m := range x.Members {
			y.noteSecrets(m.Value, secret || memberName(m) == "headers" || secretName(memberName(m)))
		}
	case hujson.Literal:
		if x.Kind() != '"' {
			return
		}
		_, refs := references(x.String())
		for _, ref := range refs {
			if secret || secretName(ref.name) {
				y.report.secretVars = append(y.report.secretVars, ref.name)
			}
		}
	}
}

// names reports whether the object v has one of these members.
func names(v hujson.Value, members ...string) bool {
	o, err := asObject(v)
	return err == nil && slices.ContainsFunc(o.Members, func(m hujson.ObjectMember) bool { return slices.Contains(members, memberName(m)) })
}

// turnTo drops the earlier layers' endpoint if v, a value of the block f, names another preset.
func (y *layer) turnTo(f *field, v hujson.Value) {
	o, err := asObject(v)
	if err != nil {
		return // the error is reported where v is read
	}
	for _, m := range o.Members {
		lit, ok := m.Value.Value.(hujson.Literal)
		if memberName(m) != "preset" || !ok || lit.Kind() != '"' {
			continue
		}
		if s, err := y.expanded(f.byName["preset"], lit.String()); err == nil && s != y.cfg.Provider.Preset {
			y.leaveEndpoint()
		}
	}
}

// leaveEndpoint resets the settings for one endpoint: its key and its models do not apply to another.
func (l *loader) leaveEndpoint() {
	fresh := Default()
	l.root.byName["provider"].all(func(f *field) {
		if f.tag.Get("endpoint") != "yes" {
			return
		}
		f.in(&l.cfg).Set(f.in(&fresh))
		maps.DeleteFunc(l.report.origins, func(key string, _ Origin) bool { return key == f.path || strings.HasPrefix(key, f.path+".") })
	})
}

// ForgetEndpoint resets a settings file's endpoint and profile to the defaults: no setting, above all no
// key, may reach another endpoint. The rest of the file stays unchanged. gone lists the reset settings.
func ForgetEndpoint(content []byte) (text []byte, gone []string, err error) {
	src, err := parse("settings", content)
	if err != nil {
		return nil, nil, err
	}
	fresh, root := Default(), fields()
	forget := func(f *field, in hujson.Value) {
		if err == nil && names(in, f.name()) {
			content, err = Set(content, f.path, f.in(&fresh).Interface())
			gone = append(gone, f.path)
		}
	}
	forget(root.byName["profile"], src.root)
	o, notObject := asObject(src.root)
	if notObject != nil {
		return nil, nil, notObject
	}
	for _, m := range o.Members {
		if memberName(m) != "provider" {
			continue
		}
		for _, f := range root.byName["provider"].kids {
			if f.tag.Get("endpoint") == "yes" {
				forget(f, m.Value)
			}
		}
	}
	return content, gone, err
}
