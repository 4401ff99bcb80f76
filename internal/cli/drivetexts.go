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

// maxFlagFile is the most bytes of text in a file that a flag names.
const maxFlagFile = 4 << 20

// flagText returns the value of a flag that is JSON, or the content of the file that it names.
func (inv *invocation) flagText(flag, value string) ([]byte, error) {
	if strings.HasPrefix(strings.TrimSpace(value), "{") {
		return []byte(value), nil
	}
	if !filepath.IsAbs(value) {
		value = filepath.Join(inv.Dir, value)
	}
	text, err := repofile.ReadNamed(value, maxFlagFile)
	if err != nil {
		return nil, inputErrorf("--%s: %v", flag, err)
	}
	return text, nil
}

// readFlagFiles reads the files that flags name.
func (inv *invocation) readFlagFiles() (err error) {
	fl := inv.flags
	if fl.schema != "" {
		if fl.Schema, err = inv.flagText("json-schema", fl.schema); err != nil {
			return err
		}
	}
	if fl.systemPromptFile != "" {
		text, err := inv.flagText("system-prompt-file", fl.systemPromptFile)
		if err != nil {
			return err
		}
		fl.SystemPrompt = string(text)
	}
	if fl.settings != "" {
		text, err := inv.flagText("settings", fl.settings)
		if err != nil {
			return err
		}
		fl.settings = "" // read only once
		return inv.applySettings(text)
	}
	return nil
}

// applySettings applies settings in another agent's form to this run: permissions and hooks. An unknown
// key that may forbid something is an error; the others are ignored.
func (inv *invocation) applySettings(text []byte) error {
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
		return inputErrorf("--settings: %v", err)
	}
	if key := duplicateKey(json.NewDecoder(bytes.NewReader(text))); key != "" {
		return inputErrorf("--settings: %q appears twice in one object, and only one of them would apply", key)
	}
	if len(s.Permissions.Ask) > 0 {
		return inputErrorf("--settings: rules under permissions.ask are not supported; write them under permission in your own settings")
	}
	fl := inv.flags
	if err := inv.applyPermissions(text); err != nil {
		return err
	}
	for list, to := range map[*[]string]*[]rule.Spec{&s.Permissions.Allow: &fl.AllowTools,
		&s.Permissions.Deny: &fl.DenyTools} {
		for _, text := range *list {
			specs, err := rule.ParseSpecs(text)
			if err != nil {
				return inputErrorf("--settings: %v", err)
			}
			*to = append(*to, app.NormalizeSpecs(specs)...)
		}
	}
	if fl.Mode == "" && s.Permissions.Mode != "" {
		fl.Mode, fl.dontAsk = fromForeignMode(s.Permissions.Mode)
	}
	fl.AddDirs = append(fl.AddDirs, s.Permissions.Dirs...)
	if fl.Model == "" && s.Model != "" {
		fl.Model = s.Model
		inv.loadSettings(fl)
	}
	list, skipped, err := hooks.Parse(s.Hooks, hooks.Source{FromUser: true})
	if err != nil {
		return inputErrorf("--settings: %v", err)
	}
	for _, text := range skipped {
		inv.warn(text)
	}
	fl.Driver.Hooks = append(fl.Driver.Hooks, list...)
	return nil
}

// duplicateKey returns a key that occurs twice in an object of a JSON text, ignoring case; "" if none.
// Variables are case-sensitive.
func duplicateKey(d *json.Decoder) string {
	token, _ := d.Token()
	if token == json.Delim('[') {
		for d.More() {
			if key := duplicateKey(d); key != "" {
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
		} else if inner := duplicateKey(d); inner != "" {
			return inner
		}
	}
	_, _ = d.Token()
	return ""
}

// harmlessKeys lists the keys of another agent's settings, in lower case, that forbid nothing: a driving
// program sets them for that agent.
var harmlessKeys = []string{
	"$schema", "alwaysthinkingenabled", "apikeyhelper", "attribution", "autocompactenabled", "automemoryenabled",
	"autoupdates", "autoupdateschannel",
	"awsauthrefresh", "awscredentialexport", "cleanupperioddays", "companyannouncements", "effortlevel",
	"enableallprojectmcpservers",
	"enabledplugins", "env", "extraknownmarketplaces", "fastmode", "filesuggestion", "forceloginmethod",
	"forceloginorguuid",
	"includecoauthoredby", "includegitinstructions", "language", "otelheadershelper", "outputstyle", "plansdirectory",
	"preferrednotifchannel",
	"prefersreducedmotion", "respectgitignore", "showturnduration", "spinnertipsenabled", "spinnerverbs", "statusline",
	"terminalprogressbarenabled", "theme", "verbose",
}

// applyPermissions applies rules in the form of our own settings, and rejects every key that may forbid
// something but would not.
func (inv *invocation) applyPermissions(text []byte) error {
	var top, theirs map[string]json.RawMessage
	_ = json.Unmarshal(text, &top) // parsed before
	for key, value := range top {
		switch lower := strings.ToLower(key); {
		case key == "permission":
			if err := inv.applyRules(value); err != nil {
				return err
			}
		case lower == "permissions":
			_ = json.Unmarshal(value, &theirs) // parsed before
		case slices.Contains([]string{"model", "hooks"}, key), slices.Contains(harmlessKeys, lower),
			string(value) == "false" && !mayForbid(lower):
		default:
			return inputErrorf("--settings: %s has no effect here; write it in a file for --config", key)
		}
	}
	for key := range theirs {
		if !slices.Contains([]string{"allow", "deny", "ask", "defaultmode", "additionaldirectories"}, strings.ToLower(key)) {
			return inputErrorf("--settings: permissions.%s is unknown; use allow, deny, defaultMode or additionalDirectories", key)
		}
	}
	return nil
}

// mayForbid reports whether an unknown key looks as if it forbids something.
func mayForbid(key string) bool {
	return slices.ContainsFunc([]string{"permis", "deny", "denied", "disallow", "forbid", "block", "exclude"},
		func(part string) bool { return strings.Contains(key, part) })
}

// applyRules applies rules by tool, each a verdict or verdicts by pattern.
func (inv *invocation) applyRules(text []byte) error {
	var tools map[string]json.RawMessage
	if json.Unmarshal(text, &tools) != nil {
		return inputErrorf("--settings: permission: expected an object of verdicts by tool")
	}
	fl := inv.flags
	for name, value := range tools {
		rules := map[string]string{"*": ""}
		var one string
		if json.Unmarshal(value, &one) == nil {
			rules["*"] = one
		} else if json.Unmarshal(value, &rules) != nil {
			return inputErrorf("--settings: permission.%s: expected allow or deny, or an object of them by pattern", name)
		} else if rules["*"] == "" {
			delete(rules, "*")
		}
		for pattern, verdict := range rules {
			spec, err := rule.ParseSpec(name + "(" + pattern + ")")
			switch {
			case err != nil:
				return inputErrorf("--settings: permission.%s: %v", name, err)
			case verdict == "deny":
				fl.DenyTools = append(fl.DenyTools, app.NormalizeSpecs([]rule.Spec{spec})...)
			case verdict == "allow":
				fl.AllowTools = append(fl.AllowTools, app.NormalizeSpecs([]rule.Spec{spec})...)
			default:
				return inputErrorf("--settings: permission.%s: expected allow or deny, found %q; write other rules in a file for --config", name, verdict)
			}
		}
	}
	return nil
}
