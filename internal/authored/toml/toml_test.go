package toml

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"": `{}`,
		"model = \"gpt-5\" # which\napproval_policy = 'on-request'\n":                                                         `{"approval_policy":"on-request","model":"gpt-5"}`,
		"[a]\nb = 1\r\n[a.c.\"d e\"]\nf = true\n":                                                                             `{"a":{"b":1,"c":{"d e":{"f":true}}}}`,
		"[mcp_servers.docs]\ncommand=\"npx\"\nargs = [\n \"-y\", # x\n \"@docs/mcp\",\n]\nenv = { \"A\" = \"1\", B.C = 'x' }": `{"mcp_servers":{"docs":{"args":["-y","@docs/mcp"],"command":"npx","env":{"A":"1","B":{"C":"x"}}}}}`,
		"[[p]]\nn=1\n[[p]]\nn=2\n[p.q]\nz=3":                                                                                  `{"p":[{"n":1},{"n":2,"q":{"z":3}}]}`,
		"s = \"\"\"\na\\tb\\u00e9 \\\n   c\"\"\"\nl = '''x\ny'''":                                                             `{"l":"x\ny","s":"a\tbé c"}`,
		"d = 2024-01-02T03:04:05Z\nn = 1_000\na.b.c = []":                                                                     `{"a":{"b":{"c":[]}},"d":"2024-01-02T03:04:05Z","n":1000}`,
	} {
		got, err := Parse(text)
		b, _ := json.Marshal(got)
		if err != nil || string(b) != want {
			t.Errorf("%q: %s, %v", text, b, err)
		}
	}
	for _, bad := range []string{"a", "a =", "= 1", "[a", "[a] x", "a = \"x", "a = [1", "a = {b", "a=1 b=2", "a=1\na.b=2", "a=[]\n[a.b]\nc=1", "a=\"\\u12\"", "x = 'a\n'"} {
		if v, err := Parse(bad); err == nil {
			t.Errorf("%q: %v", bad, v)
		}
	}
	if _, err := Parse("a = " + strings.Repeat("[", 100000)); err == nil {
		t.Error("a bottomless list")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("[a]\nb = [\"c\", {d = 1}]")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = Parse(text) })
}
