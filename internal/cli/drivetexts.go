package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/agent/hooks"
	"coder/internal/app"
	"coder/internal/host/repofile"
	"coder/internal/policy/rule"
)

// maxText is the most bytes of text in a file that a flag names.
const maxText = 4 << 20

// text returns the value of a flag that is JSON, or the content of the file that it names.
func (inv *invocation) text(flag, value string) ([]byte, error) {
	if strings.HasPrefix(strings.TrimSpace(value), "{") {
		return []byte(value), nil
	}
	if !filepath.IsAbs(value) {
		value = filepath.Join(inv.Dir, value)
	}
	text, err := repofile.Named(value, maxText)
	if err != nil {
		return nil, inputf("--%s: %v", flag, err)
	}
	return text, nil
}

// readTexts reads the files that flags name.
func (inv *invocation) readTexts() (err error) {
	fl := inv.flags
	if fl.schema != "" {
		if fl.Schema, err = inv.text("json-schema", fl.schema); err != nil {
			return err
		}
	}
	if fl.systemFile != "" {
		text, err := inv.text("system-prompt-file", fl.systemFile)
		if err != nil {
			return err
		}
		fl.SystemPrompt = string(text)
	}
	if fl.settings != "" {
		text, err := inv.text("settings", fl.settings)
		if err != nil {
			return err
		}
		fl.settings = "" // read only once
		return inv.adoptSettings(text)
	}
	return nil
}

// adoptSettings applies settings in another agent's form to this run: permissions and hooks. An unknown
// key that may forbid something is an error; the others are ignored.
func (inv *invocation) adoptSettings(text []byte) error {
	var s struct {
		Model       string                     `json:"model"`
		Hooks       map[string]json.RawMessage `json:"hooks"`
		Permissions struct {
			Allow, Deny, Ask []string
			Mode             string   `json:"defaultMode"`
			Dirs             []string `json:"additionalDirectories"`
		} `json:"permissions"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return inputf("--settings: %v", err)
	}
	if key := doubled(json.NewDecoder(bytes.NewReader(text))); key != "" {
		return inputf("--settings: %q appears twice in one object, and only one of them would apply", key)
	}
	if len(s.Permissions.Ask) > 0 {
		return inputf("--settings: rules under permissions.ask are not supported; write them under permission in your own settings")
	}
	fl := inv.flags
	if err := inv.adoptPermission(text); err != nil {
		return err
	}
	for list, to := range map[*[]string]*[]rule.Spec{&s.Permissions.Allow: &fl.AllowTools, &s.Permissions.Deny: &fl.DenyTools} {
		for _, text := range *list {
			specs, err := rule.ParseSpecs(text)
			if err != nil {
				return inputf("--settings: %v", err)
			}
			*to = append(*to, app.Ours(specs)...)
		}
	}
	if fl.Mode == "" && s.Permissions.Mode != "" {
		fl.Mode, fl.dontAsk = inwardMode(s.Permissions.Mode)
	}
	fl.AddDirs = append(fl.AddDirs, s.Permissions.Dirs...)
	if fl.Model == "" && s.Model != "" {
		fl.Model = s.Model
		inv.load(fl)
	}
	list, skipped, err := hooks.Read(s.Hooks, hooks.Source{Own: true})
	if err != nil {
		return inputf("--settings: %v", err)
	}
	for _, text := range skipped {
		inv.warn(text)
	}
	fl.Driver.Hooks = append(fl.Driver.Hooks, list...)
	return nil
}

// doubled returns a key that occurs twice in an object of a JSON text, ignoring case; "" if none.
// Variables are case-sensitive.
func doubled(d *json.Decoder) string {
	token, _ := d.Token()
	if token == json.Delim('[') {
		for d.More() {
			if key := doubled(d); key != "" {
				return key
			}
		}
		_, _ = d.Token()
	}
	if token != json.Delim('{') {
		return ""
	}
	seen := make(map[string]bool)
	for d.More() {
		token, _ := d.Token()
		key, _ := token.(string)
		folded := strings.ToLower(key)
		if seen[folded] {
			return key
		}
		seen[folded] = true
		if folded == "env" {
			var variables json.RawMessage
			_ = d.Decode(&variables)
		} else if inner := doubled(d); inner != "" {
			return inner
		}
	}
	_, _ = d.Token()
	return ""
}

// permissive lists the keys of another agent's settings, in lower case, that forbid nothing: a driving
// program sets them for that agent.
var permissive = []string{
	"$schema", "alwaysthinkingenabled", "apikeyhelper", "attribution", "autocompactenabled", "automemoryenabled", "autoupdates", "autoupdateschannel",
	"awsauthrefresh", "awscredentialexport", "cleanupperioddays", "companyannouncements", "effortlevel", "enableallprojectmcpservers",
	"enabledplugins", "env", "extraknownmarketplaces", "fastmode", "filesuggestion", "forceloginmethod", "forceloginorguuid",
	"includecoauthoredby", "includegitinstructions", "language", "otelheadershelper", "outputstyle", "plansdirectory", "preferrednotifchannel",
	"prefersreducedmotion", "respectgitignore", "showturnduration", "spinnertipsenabled", "spinnerverbs", "statusline", "terminalprogressbarenabled", "theme", "verbose",
}

// adoptPermission applies rules in the form of our own settings, and rejects every key that may forbid
// something but would not.
func (inv *invocation) adoptPermission(text []byte) error {
	var top, theirs map[string]json.RawMessage
	_ = json.Unmarshal(text, &top) // parsed before
	for key, value := range top {
		switch lower := strings.ToLower(key); {
		case key == "permission":
			if err := inv.adoptRules(value); err != nil {
				return err
			}
		case lower == "permissions":
			_ = json.Unmarshal(value, &theirs) // parsed before
		case slices.Contains([]string{"model", "hooks"}, key), slices.Contains(permissive, lower), string(value) == "false" && !forbids(lower):
		default:
			return inputf("--settings: %s has no effect here; write it in a file for --config", key)
		}
	}
	for key := range theirs {
		if !slices.Contains([]string{"allow", "deny", "ask", "defaultmode", "additionaldirectories"}, strings.ToLower(key)) {
			return inputf("--settings: permissions.%s is unknown; use allow, deny, defaultMode or additionalDirectories", key)
		}
	}
	return nil
}

// forbids reports whether an unknown key looks as if it forbids something.
func forbids(key string) bool {
	return slices.ContainsFunc([]string{"permis", "deny", "denied", "disallow", "forbid", "block", "exclude"}, func(part string) bool { return strings.Contains(key, part) })
}

// adoptRules applies rules by tool, each a verdict or verdicts by pattern.
func (inv *invocation) adoptRules(text []byte) error {
	var tools map[string]json.RawMessage
	if json.Unmarshal(text, &tools) != nil {
		return inputf("--settings: permission: expected an object of verdicts by tool")
	}
	fl := inv.flags
	for name, value := range tools {
		rules := map[string]string{"*": ""}
		var one string
		if json.Unmarshal(value, &one) == nil {
			rules["*"] = one
		} else if json.Unmarshal(value, &rules) != nil {
			return inputf("--settings: permission.%s: expected allow or deny, or an object of them by pattern", name)
		} else if rules["*"] == "" {
			delete(rules, "*")
		}
		for pattern, verdict := range rules {
			spec, err := rule.ParseSpec(name + "(" + pattern + ")")
			switch {
			case err != nil:
				return inputf("--settings: permission.%s: %v", name, err)
			case verdict == "deny":
				fl.DenyTools = append(fl.DenyTools, app.Ours([]rule.Spec{spec})...)
			case verdict == "allow":
				fl.AllowTools = append(fl.AllowTools, app.Ours([]rule.Spec{spec})...)
			default:
				return inputf("--settings: permission.%s: expected allow or deny, found %q; write other rules in a file for --config", name, verdict)
			}
		}
	}
	return nil
}
