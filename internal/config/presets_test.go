package config_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"coder/internal/config"
)

func provider(name string) func(*config.Options) {
	return flags(config.Override{Key: "provider.preset", Value: name, Name: "--provider"})
}

func profileFlag(name string) func(*config.Options) {
	return flags(config.Override{Key: "profile", Value: name, Name: "--profile"})
}

// TestPresets shows for each preset what naming it comes to.
func TestPresets(t *testing.T) {
	want := map[string][4]string{ // address, wire, variable of the key, header of the key
		"openai":     {"https://api.openai.com/v1", "openai", "OPENAI_API_KEY", ""},
		"anthropic":  {"https://api.anthropic.com", "anthropic", "ANTHROPIC_API_KEY", ""},
		"gemini":     {"https://generativelanguage.googleapis.com/v1beta", "gemini", "GOOGLE_API_KEY", ""},
		"openrouter": {"https://openrouter.ai/api/v1", "openai", "OPENROUTER_API_KEY", ""},
		"deepseek":   {"https://api.deepseek.com/v1", "openai", "DEEPSEEK_API_KEY", ""},
		"dashscope":  {"https://dashscope.aliyuncs.com/compatible-mode/v1", "openai", "DASHSCOPE_API_KEY", ""},
		"groq":       {"https://api.groq.com/openai/v1", "openai", "GROQ_API_KEY", ""},
		"xai":        {"https://api.x.ai/v1", "openai", "XAI_API_KEY", ""},
		"mistral":    {"https://api.mistral.ai/v1", "openai", "MISTRAL_API_KEY", ""},
		"zai":        {"https://api.z.ai/api/paas/v4", "openai", "ZAI_API_KEY", ""},
		"moonshot":   {"https://api.moonshot.ai/v1", "openai", "MOONSHOT_API_KEY", ""},
		"azure":      {"https://res.openai.azure.com/openai/deployments/{model}?api-version=2024-10-21", "openai", "AZURE_OPENAI_API_KEY", "api-key"},
		"ollama":     {"http://127.0.0.1:11434/v1", "openai", "", ""},
		"llamacpp":   {"http://127.0.0.1:8080/v1", "openai", "LLAMA_API_KEY", ""},
		"vllm":       {"http://127.0.0.1:8000/v1", "openai", "VLLM_API_KEY", ""},
		"lmstudio":   {"http://127.0.0.1:1234/v1", "openai", "LM_API_TOKEN", ""},
	}
	if len(config.Presets()) != len(want) {
		t.Errorf("%d presets, %d known here", len(config.Presets()), len(want))
	}
	for name, w := range want {
		e := env{"AZURE_OPENAI_ENDPOINT": "https://res.openai.azure.com/"}
		if w[2] != "" {
			e[w[2]] = "key-of-" + name
		}
		c, r := mustLoad(t, files{homeFile: `{"provider": {"base_url": "http://other/v1", "kind": "gemini", "api_key": "other", "model": "other", "headers": {"A": "b"}}}`}, e, provider(name))
		p := c.Provider
		key := ""
		if w[2] != "" {
			key = e[w[2]]
		}
		if p.BaseURL != w[0] || p.Kind != w[1] || p.APIKey != key || p.KeyHeader != w[3] || len(p.Headers) != 0 || p.Model == "other" {
			t.Errorf("%s is %+v", name, p)
		}
		if preset := config.FindPreset(name); !preset.Local && name != "azure" && p.Model != preset.Model || preset.Local && preset.RaiseWindowHint == "" {
			t.Errorf("%s uses %q: %+v", name, p.Model, preset)
		}
		if w[2] != "" && (!slices.Contains(r.SecretVariables(), w[2]) || r.Origin("provider.api_key").String() != "env "+w[2]) {
			t.Errorf("the key of %s is from %s; kept from commands: %v", name, r.Origin("provider.api_key"), r.SecretVariables())
		}
		if c, _ := mustLoad(t, nil, env{"CODER_PROVIDER": name, "AZURE_OPENAI_ENDPOINT": "https://res.openai.azure.com/"}); c.Provider.BaseURL != w[0] {
			t.Errorf("CODER_PROVIDER=%s is %s", name, c.Provider.BaseURL)
		}
	}
}

func TestChoosingAnEndpoint(t *testing.T) {
	const mine = `{"provider": {"preset": "deepseek", "model": "mine", "timeout_ms": 5}}`
	for name, tt := range map[string]struct {
		file                          string
		env                           env
		flag                          string
		preset, base, kind, key, what string
	}{
		"a preset in a file":             {file: `{"provider": {"preset": "groq"}}`, env: env{"GROQ_API_KEY": "g", "OPENAI_API_KEY": "o"}, preset: "groq", base: "https://api.groq.com/openai/v1", kind: "openai", key: "g"},
		"its address from a variable":    {file: `{"provider": {"preset": "groq"}}`, env: env{"GROQ_API_KEY": "g", "GROQ_BASE_URL": "http://h/v1"}, preset: "groq", base: "http://h/v1", kind: "openai", key: "g"},
		"its key goes to no stranger":    {file: `{"provider": {"preset": "groq", "base_url": "http://h/v1"}}`, env: env{"GROQ_API_KEY": "g"}, preset: "groq", base: "http://h/v1", kind: "openai"},
		"a flag over a file":             {file: mine, env: env{"GROQ_API_KEY": "g"}, flag: "groq", preset: "groq", base: "https://api.groq.com/openai/v1", kind: "openai", key: "g"},
		"the same one again":             {file: mine, env: env{"DEEPSEEK_API_KEY": "d"}, flag: "deepseek", preset: "deepseek", base: "https://api.deepseek.com/v1", kind: "openai", key: "d", what: "mine"},
		"an address by flag":             {file: `{"provider": {"preset": "groq", "api_key": "g", "model": "m"}}`, env: env{"GROQ_API_KEY": "g"}, flag: "http://gate/v1", base: "http://gate/v1", kind: "openai"},
		"a wire is not a preset":         {env: env{"CODER_PROVIDER": "anthropic", "CODER_BASE_URL": "http://h", "ANTHROPIC_API_KEY": "a"}, base: "http://h", kind: "anthropic"},
		"its wire can be chosen":         {file: `{"provider": {"preset": "openai", "kind": "responses"}}`, env: env{"OPENAI_API_KEY": "o"}, preset: "openai", base: "https://api.openai.com/v1", kind: "responses", key: "o"},
		"a new vendor by its key":        {env: env{"XAI_API_KEY": "x"}, preset: "xai", base: "https://api.x.ai/v1", kind: "openai", key: "x", what: "grok-4"},
		"the first of two keys":          {env: env{"MISTRAL_API_KEY": "m", "GROQ_API_KEY": "g"}, preset: "groq", base: "https://api.groq.com/openai/v1", kind: "openai", key: "g"},
		"azure by its key":               {env: env{"AZURE_OPENAI_API_KEY": "z", "AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com", "AZURE_OPENAI_DEPLOYMENT": "dep", "OPENAI_API_VERSION": "2025-01-01"}, preset: "azure", base: "https://r.openai.azure.com/openai/deployments/{model}?api-version=2025-01-01", kind: "openai", key: "z", what: "dep"},
		"azure's newer form":             {env: env{"AZURE_OPENAI_API_KEY": "z", "AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/openai/v1/"}, preset: "azure", base: "https://r.openai.azure.com/openai/v1/", kind: "openai", key: "z"},
		"azure named with its server":    {file: `{"provider": {"preset": "azure", "base_url": "https://r.openai.azure.com/"}}`, env: env{"AZURE_OPENAI_API_KEY": "z"}, preset: "azure", base: "https://r.openai.azure.com/openai/deployments/{model}?api-version=2024-10-21", kind: "openai", key: "z"},
		"azure named with a stranger":    {file: `{"provider": {"preset": "azure", "base_url": "https://openai.azure.com.evil/x"}}`, env: env{"AZURE_OPENAI_API_KEY": "z"}, preset: "azure", base: "https://openai.azure.com.evil/x", kind: "openai"},
		"azure without a server":         {env: env{"AZURE_OPENAI_API_KEY": "z"}, kind: "openai"},
		"ollama's host":                  {env: env{"OLLAMA_HOST": "0.0.0.0", "CODER_PROVIDER": "ollama"}, preset: "ollama", base: "http://127.0.0.1:11434/v1", kind: "openai"},
		"ollama's host and port":         {env: env{"OLLAMA_HOST": "box:99", "CODER_PROVIDER": "ollama"}, preset: "ollama", base: "http://box:99/v1", kind: "openai"},
		"ollama behind https":            {env: env{"OLLAMA_HOST": "https://box", "CODER_PROVIDER": "ollama"}, preset: "ollama", base: "https://box/v1", kind: "openai"},
		"a local server is no surprise":  {env: env{"OLLAMA_HOST": "box"}, kind: "openai"},
		"an address that is known":       {file: `{"provider": {"base_url": "http://localhost:11434/v1"}}`, preset: "ollama", base: "http://localhost:11434/v1", kind: "openai"},
		"a profile by setting":           {file: `{"profile": "w", "profiles": {"w": {"preset": "xai", "model": "x1"}}, "provider": {"api_key": "k"}}`, env: env{"XAI_API_KEY": "x"}, preset: "xai", base: "https://api.x.ai/v1", kind: "openai", key: "x", what: "x1"},
		"a profile by variable":          {file: `{"profiles": {"w": {"base_url": "http://w/v1", "api_key": "${WK}"}}, "provider": {"preset": "xai"}}`, env: env{"CODER_PROFILE": "w", "WK": "w", "CODER_MODEL": "mm"}, base: "http://w/v1", kind: "openai", key: "w", what: "mm"},
		"a profile with a model alone":   {file: `{"profile": "w", "profiles": {"w": {"model": "x2"}}, "provider": {"preset": "xai", "model": "x1"}}`, env: env{"XAI_API_KEY": "x"}, preset: "xai", base: "https://api.x.ai/v1", kind: "openai", key: "x", what: "x2"},
		"what is wrong in another stays": {file: `{"profiles": {"v": {"api_key": "${NOT_SET}"}, "w": {"preset": "xai"}}, "profile": "w"}`, env: env{"XAI_API_KEY": "x"}, preset: "xai", base: "https://api.x.ai/v1", kind: "openai", key: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			change := func(*config.Options) {}
			if tt.flag != "" {
				change = provider(tt.flag)
			}
			c, _ := mustLoad(t, files{homeFile: tt.file}, tt.env, change)
			p := c.Provider
			if p.Preset != tt.preset || p.BaseURL != tt.base || p.Kind != tt.kind || p.APIKey != tt.key || tt.what != "" && p.Model != tt.what {
				t.Errorf("got %q %q %q %q %q", p.Preset, p.BaseURL, p.Kind, p.APIKey, p.Model)
			}
			if strings.Contains(tt.file, "timeout_ms") && p.TimeoutMS != 5 {
				t.Error("what holds for every endpoint was lost")
			}
		})
	}
}

func TestProfilesAreLayered(t *testing.T) {
	home := `{"profile": "a", "profiles": {"a": {"preset": "groq", "model": "m1"}, "b": {"preset": "xai"}}}`
	c, _ := mustLoad(t, files{homeFile: home, projectFile: `{"provider": {"model": "m2"}, "profiles": {"b": {"model": "m3"}}}`}, nil)
	if c.Provider.Preset != "groq" || c.Provider.Model != "m2" {
		t.Errorf("the project's model is the stronger: %+v", c.Provider)
	}
	c, r := mustLoad(t, files{homeFile: home, projectFile: `{"provider": {"model": "m2"}, "profiles": {"b": {"model": "m3"}}}`}, env{"CODER_MODEL": "m4"}, profileFlag("b"))
	if c.Provider.Preset != "xai" || c.Provider.Model != "m3" || c.Profile != "b" || r.Origin("provider.model").Source != projectFile {
		t.Errorf("a flag is the strongest: %+v", c.Provider)
	}
	for text, want := range map[string]string{
		`{"profile": "c", "profiles": {"a": {}, "b": {}}}`: `unknown profile "c"; use one of: a, b`,
		`{"profile": "c"}`: `unknown profile "c"`,
		"{\"profile\": \"a\",\n\"profiles\": {\"a\": {\"modle\": 1}}}": `config.json:2:20: unknown key "provider.modle"; did you mean "provider.model"?`,
		`{"profile": "a", "profiles": {"a": {"preset": "gorq"}}}`:      `did you mean "groq"?`,
		`{"profile": "a", "profiles": {"a": {"api_key": "${GONE}"}}}`:  `variable GONE is not set`,
	} {
		if _, _, err := load(files{homeFile: text}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A project nobody trusts chooses no endpoint, by whatever name.
func TestAnUntrustedProjectChoosesNoEndpoint(t *testing.T) {
	home := `{"provider": {"preset": "openai", "api_key": "mine"}, "profiles": {"other": {"base_url": "http://other"}}}`
	before, _ := mustLoad(t, files{homeFile: home}, nil)
	for _, text := range []string{
		`"provider": {"preset": "groq"}`, `"profile": "other"`, `"profiles": {"other": {"base_url": "http://evil"}}`,
		`"provider": {"key_header": "X"}`, `"discovery": {"local": ["http://evil"]}`,
	} {
		c, r := mustLoad(t, files{homeFile: home, projectFile: "{" + text + "}"}, nil, untrusted)
		if !reflect.DeepEqual(c, before) || len(r.Warnings) != 1 {
			t.Errorf("%s: %+v, %v", text, c.Provider, r.Warnings)
		}
	}
}

func TestKeysOfProfilesAreKnown(t *testing.T) {
	_, r := mustLoad(t, files{homeFile: `{"profiles": {"a": {"api_key": "written-out-key", "base_url": "${PLACE}"}, "b": {"api_key": "${WORK}", "headers": {"X": "Bearer ${OTHER}"}}}}`}, nil)
	if got := r.Secrets([]string{"WORK=work-secret-1", "OTHER=other-secret-2", "PLACE=http://somewhere"}); !slices.Equal(got, []string{"other-secret-2", "work-secret-1", "written-out-key"}) {
		t.Errorf("%q", got)
	}
	for _, row := range r.Rows() {
		if strings.Contains(row.Value, "written") {
			t.Errorf("%+v", row)
		}
	}
}

func TestTheSchemaListsThePresets(t *testing.T) {
	for _, p := range config.Presets() {
		if _, _, err := load(files{homeFile: `{"provider": {"preset": "` + p.Name + `"}}`}, nil); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(string(config.Schema()), `"lmstudio"`); n != 1 {
		t.Errorf("%d", n)
	}
	page, err := os.ReadFile("../../docs/reference/models.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range config.Presets() {
		for _, told := range slices.Concat([]string{"| `" + p.Name + "` | " + strings.Join(p.Kinds, ", ") + " |", p.TokenVar, p.Model}, p.KeyVars, p.AddressVars, p.ModelVars) {
			if !strings.Contains(string(page), told) {
				t.Errorf("docs/reference/models.md does not tell %q of %s", told, p.Name)
			}
		}
	}
	if !strings.Contains(string(page), config.PresetsCheckedIn) {
		t.Error("docs/reference/models.md has another date")
	}
}

func TestAnEndpointIsForgottenAndNothingElse(t *testing.T) {
	got, gone, err := config.ForgetEndpoint([]byte("{\n  // mine\n  \"profile\": \"w\",\n  \"provider\": {\"preset\": \"groq\", \"api_key\": \"k\", \"api_key_command\": [\"pass\", \"groq\"], \"headers\": {\"Authorization\": \"x\"}, \"timeout_ms\": 9}, // too\n}\n"))
	want := "{\n  // mine\n  \"profile\": \"\",\n  \"provider\": {\"preset\": \"\", \"api_key\": \"\", \"api_key_command\": [], \"headers\": {}, \"timeout_ms\": 9}, // too\n}\n"
	if err != nil || string(got) != want || strings.Join(gone, " ") != "profile provider.preset provider.api_key provider.api_key_command provider.headers" {
		t.Errorf("%v %v\n%s", err, gone, got)
	}
	for _, text := range []string{"", "{}", `{"ui": {"lang": "en"}}`} {
		if got, gone, err := config.ForgetEndpoint([]byte(text)); err != nil || string(got) != text || len(gone) > 0 {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	}
	if _, _, err := config.ForgetEndpoint([]byte(`{"provider": `)); err == nil {
		t.Error("nonsense was taken for settings")
	}
}
