package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"coder/internal/config"
)

// network is the setting as files have it.
func network(c config.Config) string {
	text, _ := json.Marshal(c.Safety.Network)
	return string(text)
}

func TestTheNetworkIsAllOrNothingOrHosts(t *testing.T) {
	for value, want := range map[string]string{
		`true`: `true`, `false`: `false`, `[]`: `false`, `["registry.example.org", "*.example.net", "a:8080"]`: `["registry.example.org","*.example.net","a:8080"]`,
	} {
		c, r := mustLoad(t, files{homeFile: `{"safety": {"network": ` + value + `}}`}, nil)
		if got := network(c); got != want {
			t.Errorf("%s is %s, want %s", value, got, want)
		}
		for _, row := range r.Rows() {
			if row.Key == "safety.network" && row.Value != want {
				t.Errorf("%s is shown as %s", value, row.Value)
			}
		}
	}
	for value, want := range map[string]string{"true": "true", "false": "false", "a.example, *.b.example:22": `["a.example","*.b.example:22"]`} {
		c, _ := mustLoad(t, nil, nil, flags(config.Override{Key: "safety.network", Value: value, Name: "--settings"}))
		if got := network(c); got != want {
			t.Errorf("--settings %s is %s, want %s", value, got, want)
		}
	}
	for value, why := range map[string]string{
		`["*"]`: `"*" is not a host pattern: use true`, `["good.example", "https://x.example/y"]`: `"https://x.example/y" is not a host pattern`,
		`["a.*.example"]`: `"a.*.example" is not a host pattern`, `"no"`: "expected true, false or a list of hosts", `[1]`: "expected a list of strings", `{}`: "expected a list",
	} {
		_, _, err := load(files{homeFile: `{"safety": {"network": ` + value + `}}`}, nil)
		if err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "safety.network") {
			t.Errorf("%s: %v, want %s", value, err, why)
		}
	}
}

func TestAProjectNobodyTrustsOnlyNarrowsTheNetwork(t *testing.T) {
	for _, c := range []struct{ mine, project, want, warned string }{
		{`true`, `["a.example"]`, `["a.example"]`, ""},
		{`true`, `false`, `false`, ""},
		{`true`, `true`, `true`, ""},
		{`["a.example", "*.b.example"]`, `false`, `false`, ""},
		{`["a.example", "*.b.example"]`, `["x.b.example", "a.example:443"]`, `["x.b.example","a.example:443"]`, ""},
		{`["a.example"]`, `["a.example", "evil.example"]`, `["a.example"]`, "evil.example"},
		{`["a.example"]`, `["*.example"]`, `["a.example"]`, ""},
		{`["a.example"]`, `["evil.example"]`, `false`, "evil.example"},
		{`["a.example"]`, `true`, `["a.example"]`, "every host"},
		{`false`, `true`, `false`, "every host"},
		{`false`, `["a.example"]`, `false`, "a.example"},
	} {
		all := files{homeFile: `{"safety": {"network": ` + c.mine + `}}`, projectFile: `{"safety": {"network": ` + c.project + `}}`}
		got, r := mustLoad(t, all, nil, untrusted)
		if network(got) != c.want || len(r.Warnings) > 0 != (c.warned != "") || c.warned != "" && !strings.Contains(r.Warnings[0].Text, c.warned) {
			t.Errorf("%s then %s: %s, want %s; %v", c.mine, c.project, network(got), c.want, r.Warnings)
		}
		if got, _ := mustLoad(t, all, nil); network(got) != strings.ReplaceAll(c.project, ", ", ",") {
			t.Errorf("a trusted project sets %s, got %s", c.project, network(got))
		}
	}
}
