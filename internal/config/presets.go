package config

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Preset is an endpoint with a name: a vendor's, or that of a program which serves models on this machine.
type Preset struct {
	Name  string
	Title string // for display
	// KeyVars are the variables for its key, Bases for its address and Models for its model,
	// the strongest first. The key in Token is sent as a bearer token, as other programs do.
	KeyVars     []string
	TokenVar    string
	AddressVars []string
	ModelVars   []string
	// Addresses are its known addresses, the usual one first. Domains are known suffixes of its host names.
	Addresses       []string
	Domains         []string
	Kinds           []string // its wires, the usual one first
	KeyHeader       string   // header for the key, if not the wire's own
	Model           string   // the default model, as of [PresetsCheckedIn]
	Local           bool     // runs on this machine, and needs no key
	RaiseWindowHint string   // how to get a larger window
	KeyPage         string   // where users create a key
}

// PresetsCheckedIn is the month in which the table was last checked.
const PresetsCheckedIn = "2026-11"

var chatAndResponses = []string{"openai", "responses"}

// presets are in the order in which coder looks for their keys.
var presets = []Preset{
	{
		Name: "openai", Title: "OpenAI", KeyVars: []string{"OPENAI_API_KEY"},
		AddressVars: []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"},
		ModelVars:   []string{"OPENAI_MODEL", "OPENAI_DEFAULT_MODEL"},
		Addresses:   []string{"https://api.openai.com/v1"}, Kinds: chatAndResponses, Model: "gpt-5.4",
		KeyPage: "platform.openai.com/api-keys",
	},
	{
		Name: "openrouter", Title: "OpenRouter", KeyVars: []string{"OPENROUTER_API_KEY"},
		AddressVars: []string{"OPENROUTER_BASE_URL"}, ModelVars: []string{"OPENROUTER_MODEL"},
		Addresses: []string{"https://openrouter.ai/api/v1"}, Kinds: chatAndResponses, Model: "openrouter/auto",
		KeyPage: "openrouter.ai/keys",
	},
	{
		Name: "deepseek", Title: "DeepSeek", KeyVars: []string{"DEEPSEEK_API_KEY"},
		AddressVars: []string{"DEEPSEEK_BASE_URL", "DEEPSEEK_API_BASE"}, ModelVars: []string{"DEEPSEEK_MODEL"},
		Addresses: []string{"https://api.deepseek.com/v1"}, Kinds: []string{"openai"}, Model: "deepseek-v4-flash",
		KeyPage: "platform.deepseek.com/api_keys",
	},
	{
		Name: "dashscope", Title: "DashScope", KeyVars: []string{"DASHSCOPE_API_KEY"},
		AddressVars: []string{"DASHSCOPE_BASE_URL"}, ModelVars: []string{"DASHSCOPE_MODEL"},
		Addresses: []string{"https://dashscope.aliyuncs.com/compatible-mode/v1",
			"https://dashscope-intl.aliyuncs.com/compatible-mode/v1"},
		Kinds: []string{"openai"}, Model: "qwen3-coder-plus", KeyPage: "bailian.console.aliyun.com",
	},
	{
		Name: "anthropic", Title: "Anthropic", KeyVars: []string{"ANTHROPIC_API_KEY"},
		AddressVars: []string{"ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"}, ModelVars: []string{"ANTHROPIC_MODEL"},
		TokenVar:  "ANTHROPIC_AUTH_TOKEN",
		Addresses: []string{"https://api.anthropic.com"}, Kinds: []string{"anthropic"}, Model: "claude-sonnet-5-5",
		KeyPage: "console.anthropic.com/settings/keys",
	},
	{
		Name: "gemini", Title: "Gemini", KeyVars: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		AddressVars: []string{"GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"}, ModelVars: []string{"GEMINI_MODEL"},
		Addresses: []string{"https://generativelanguage.googleapis.com/v1beta"}, Kinds: []string{"gemini"},
		Model: "gemini-3.5-flash", KeyPage: "aistudio.google.com/apikey",
	},
	{
		Name: "groq", Title: "Groq", KeyVars: []string{"GROQ_API_KEY"}, AddressVars: []string{"GROQ_BASE_URL"},
		ModelVars: []string{"GROQ_MODEL"},
		Addresses: []string{"https://api.groq.com/openai/v1"}, Kinds: chatAndResponses, Model: "openai/gpt-oss-120b",
		KeyPage: "console.groq.com/keys",
	},
	{
		Name: "xai", Title: "xAI", KeyVars: []string{"XAI_API_KEY"}, AddressVars: []string{"XAI_BASE_URL"},
		ModelVars: []string{"XAI_MODEL"},
		Addresses: []string{"https://api.x.ai/v1"}, Kinds: chatAndResponses, Model: "grok-4", KeyPage: "console.x.ai",
	},
	{
		Name: "mistral", Title: "Mistral", KeyVars: []string{"MISTRAL_API_KEY"}, AddressVars: []string{"MISTRAL_BASE_URL"},
		ModelVars: []string{"MISTRAL_MODEL"},
		Addresses: []string{"https://api.mistral.ai/v1"}, Kinds: []string{"openai"}, Model: "devstral-medium-latest",
		KeyPage: "console.mistral.ai/api-keys",
	},
	{
		Name: "zai", Title: "Z.ai", KeyVars: []string{"ZAI_API_KEY", "ZHIPUAI_API_KEY"},
		AddressVars: []string{"ZAI_BASE_URL"}, ModelVars: []string{"ZAI_MODEL"},
		Addresses: []string{"https://api.z.ai/api/paas/v4", "https://open.bigmodel.cn/api/paas/v4"},
		Kinds:     []string{"openai"}, Model: "glm-4.6", KeyPage: "z.ai/manage-apikey/apikey-list",
	},
	{
		Name: "moonshot", Title: "Moonshot", KeyVars: []string{"MOONSHOT_API_KEY"},
		AddressVars: []string{"MOONSHOT_BASE_URL"}, ModelVars: []string{"MOONSHOT_MODEL"},
		Addresses: []string{"https://api.moonshot.ai/v1", "https://api.moonshot.cn/v1"}, Kinds: []string{"openai"},
		Model: "kimi-k2-thinking", KeyPage: "platform.moonshot.ai/console/api-keys",
	},
	{
		Name: "azure", Title: "Azure OpenAI", KeyVars: []string{"AZURE_OPENAI_API_KEY"},
		AddressVars: []string{"AZURE_OPENAI_ENDPOINT"}, ModelVars: []string{"AZURE_OPENAI_DEPLOYMENT",
			"AZURE_OPENAI_DEPLOYMENT_NAME"},
		Domains: []string{".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"},
		Kinds:   []string{"openai"}, KeyHeader: "api-key", KeyPage: "portal.azure.com",
	},
	{
		Name: "ollama", Title: "Ollama", AddressVars: []string{"OLLAMA_HOST", "OLLAMA_BASE_URL", "OLLAMA_API_BASE"},
		ModelVars: []string{"OLLAMA_MODEL"}, Addresses: []string{"http://127.0.0.1:11434/v1", "http://localhost:11434/v1"},
		Kinds: chatAndResponses, Local: true,
		RaiseWindowHint: "start it with OLLAMA_CONTEXT_LENGTH=32768, or set num_ctx in a Modelfile",
	},
	{
		Name: "llamacpp", Title: "llama.cpp", KeyVars: []string{"LLAMA_API_KEY"},
		Addresses: []string{"http://127.0.0.1:8080/v1", "http://localhost:8080/v1"},
		Kinds:     []string{"openai", "responses", "anthropic"}, Local: true,
		RaiseWindowHint: "start llama-server with a larger --ctx-size, such as --ctx-size 32768",
	},
	{
		Name: "vllm", Title: "vLLM", KeyVars: []string{"VLLM_API_KEY"},
		Addresses: []string{"http://127.0.0.1:8000/v1", "http://localhost:8000/v1"},
		Kinds:     chatAndResponses, Local: true, RaiseWindowHint: "start it with a larger --max-model-len",
	},
	{
		Name: "lmstudio", Title: "LM Studio", KeyVars: []string{"LM_API_TOKEN"}, AddressVars: []string{"LM_STUDIO_API_BASE"},
		Addresses: []string{"http://127.0.0.1:1234/v1", "http://localhost:1234/v1"},
		Kinds:     chatAndResponses, Local: true, RaiseWindowHint: "load the model with a larger context length",
	},
}

// Presets returns all presets.
func Presets() []Preset { return slices.Clone(presets) }

// FindPreset returns the preset with a name, or the zero Preset.
func FindPreset(name string) Preset {
	i := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}
	}
	return presets[i]
}

// localPresetAddresses returns the usual addresses of servers on this machine.
func localPresetAddresses() (list []string) {
	for _, p := range presets {
		if p.Local {
			list = append(list, p.Addresses[0])
		}
	}
	return list
}

// FindKey finds p's key in an environment, and the variable that holds it.
func (p Preset) FindKey(getenv func(string) string) (name, key string) {
	return firstSet(p.allKeyVars(), getenv)
}

// allKeyVars returns all variables for p's key.
func (p Preset) allKeyVars() []string {
	if p.TokenVar == "" {
		return p.KeyVars
	}
	return append(slices.Clip(p.KeyVars), p.TokenVar)
}

// keyHeaderFor returns the header for a key from a variable, if it is not the wire's own.
func (p Preset) keyHeaderFor(variable string) string {
	if variable != "" && variable == p.TokenVar {
		return "Authorization"
	}
	return p.KeyHeader
}

// firstSet returns the first of some variables with a value.
func firstSet(names []string, getenv func(string) string) (name, value string) {
	for _, name := range names {
		if value := strings.TrimSpace(getenv(name)); value != "" {
			return name, value
		}
	}
	return "", ""
}

// FindAddress returns p's address in an environment, and the variable that
// sets it, or "" for the usual address. Without an address, p is unusable.
func (p Preset) FindAddress(getenv func(string) string) (address, variable string) {
	for _, name := range p.AddressVars {
		if address := p.completeAddress(strings.TrimSpace(getenv(name)), getenv); isAddress(address) {
			return address, name
		}
	}
	if len(p.Addresses) == 0 {
		return "", ""
	}
	return p.Addresses[0], ""
}

// DefaultModelSource is the source of a model that nobody chose.
const DefaultModelSource = "the default for provider.base_url"

// EndpointFromEnv returns p's endpoint in an environment, and the variable of its key. Without an address it is unusable.
func (p Preset) EndpointFromEnv(getenv func(string) string) (c Provider, variable string) {
	c = Default().Provider
	variable, c.APIKey = p.FindKey(getenv)
	c.Preset, c.Kind, c.KeyHeader = p.Name, p.Kinds[0], p.keyHeaderFor(variable)
	c.Model, _ = p.findModel(getenv)
	c.BaseURL, _ = p.FindAddress(getenv)
	return c, variable
}

// EndpointAt returns p's endpoint at an address, and the variable of its key.
func (p Preset) EndpointAt(address string, getenv func(string) string) (c Provider, variable string) {
	c, variable = p.EndpointFromEnv(getenv)
	c.BaseURL = p.completeAddress(address, getenv)
	return c, variable
}

// completeAddress completes an address for p: Ollama's may be only a host,
// and Azure's only the server, without the path of deployments.
func (p Preset) completeAddress(address string, getenv func(string) string) string {
	switch {
	case address == "":
		return ""
	case p.Name == "ollama":
		return ollamaAddress(address)
	case p.Name == "azure":
		return azureAddress(address, cmp.Or(getenv("AZURE_OPENAI_API_VERSION"), getenv("OPENAI_API_VERSION"),
			azureAPIVersion))
	}
	return address
}

// ollamaAddress returns the API address of a server in the form of OLLAMA_HOST,
// which may lack a scheme or a port, or mean all of a machine's addresses.
func ollamaAddress(host string) string {
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil {
		return ""
	}
	name, port := u.Hostname(), u.Port()
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "127.0.0.1"
	}
	if port == "" && u.Scheme == "http" {
		port = "11434"
	}
	u.Host = name
	if port != "" {
		u.Host = net.JoinHostPort(name, port)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1"
	}
	return u.String()
}

// azureAPIVersion is the default version of Azure's API.
const azureAPIVersion = "2024-10-21"

// ModelPlaceholder is the placeholder for the model's name in an address, as in Azure's.
const ModelPlaceholder = "{model}"

// azureAddress returns the address of deployments on an Azure server.
func azureAddress(server, version string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	if path := strings.Trim(u.Path, "/"); path == "" || path == "openai" {
		u.Path = ""
		return strings.TrimRight(u.String(), "/") + "/openai/deployments/" + ModelPlaceholder + "?api-version=" +
			url.QueryEscape(version)
	}
	return server
}

// findModel returns p's default model, and the variable that sets it, or "" for the usual one.
func (p Preset) findModel(getenv func(string) string) (model, variable string) {
	if name, model := firstSet(p.ModelVars, getenv); name != "" {
		return model, name
	}
	return p.Model, ""
}

// ownsAddress reports whether address is p's own, so that its key
// may be sent there. Domains count only if the user named p.
func (p Preset) ownsAddress(address string, named bool, getenv func(string) string) bool {
	own := p.Addresses
	if moved, from := p.FindAddress(getenv); from != "" {
		own = append(slices.Clip(own), moved)
	}
	if slices.ContainsFunc(own, func(k string) bool { return sameServer(k, address) }) {
		return true
	}
	u, err := url.Parse(address)
	return named && err == nil && u.Scheme == "https" && slices.ContainsFunc(p.Domains, func(d string) bool {
		return strings.HasSuffix(strings.ToLower(u.Hostname()), d)
	})
}

// PresetAt returns the preset with an address, or the zero Preset.
func PresetAt(address string, getenv func(string) string) Preset {
	i := slices.IndexFunc(presets, func(p Preset) bool { return p.ownsAddress(address, false, getenv) })
	if i < 0 {
		return Preset{}
	}
	return presets[i]
}

// chooseEndpoint fills in the unset settings of the provider.
func (l *loader) chooseEndpoint() {
	p := &l.cfg.Provider
	if p.Preset != "" {
		l.usePreset(FindPreset(p.Preset), "the default for provider.preset")
		return
	}
	if p.BaseURL != "" {
		if known := PresetAt(p.BaseURL, l.getenv); known.Name != "" { // is it a vendor's address?
			l.useVendor(known, true)
		}
		return
	}
	for _, v := range presets { // the first one with a key or an address; a key from elsewhere belongs to none
		fits := !l.isEnvSet("provider.kind") || slices.Contains(v.Kinds, p.Kind)
		address, from := v.FindAddress(l.getenv)
		name, _ := v.FindKey(l.getenv)
		hasKey := p.APIKey == "" && name != ""
		moved := from != "" && len(v.Addresses) > 0 // to a server that may need no key
		if v.Local {                                // the variable may be for the server; with a model it is for coder
			_, model := v.findModel(l.getenv)
			hasKey, moved = false, moved && (model != "" || p.Model != "")
		}
		if !fits || address == "" || !moved && !hasKey {
			continue
		}
		l.usePreset(v, "env "+cmp.Or(from, name))
		return
	}
	if l.isEnvSet("provider.kind") || p.APIKey != "" {
		p.BaseURL = DefaultEndpoint(p.Kind)
		l.report.origins["provider.base_url"] = Origin{Source: "the default for provider.kind"}
		if v := PresetAt(p.BaseURL, l.getenv); v.Name != "" {
			l.useModel(v)
		}
	}
}

// usePreset applies v's address if none is set, and everything that
// goes with it. Naming v counts as much as giving its address.
func (l *loader) usePreset(v Preset, source string) {
	p := &l.cfg.Provider
	if p.BaseURL == "" {
		address, from := v.FindAddress(l.getenv)
		if p.BaseURL = address; from != "" {
			source = "env " + from
		}
		l.report.origins["provider.base_url"] = Origin{Source: source}
	} else if whole := v.completeAddress(p.BaseURL, l.getenv); isAddress(whole) {
		p.BaseURL = whole
	}
	l.useVendor(v, v.ownsAddress(p.BaseURL, p.Preset != "", l.getenv))
}

// useVendor applies v's kind and model if none is set, and its key if it may be sent to the endpoint.
func (l *loader) useVendor(v Preset, own bool) {
	p := &l.cfg.Provider
	take := func(key string, place *string, value, source string) {
		if !l.isEnvSet(key) && value != "" && *place != value {
			*place, l.report.origins[key] = value, Origin{Source: source}
		}
	}
	take("provider.kind", &p.Kind, v.Kinds[0], "the default for provider.base_url")
	take("provider.preset", &p.Preset, v.Name, "derived from provider.base_url")
	if !own {
		return
	}
	name, key := v.FindKey(l.getenv)
	if p.APIKey != "" || p.KeyStore != "" {
		name = "" // the key is not used
	}
	take("provider.key_header", &p.KeyHeader, v.keyHeaderFor(name), "the default for provider.base_url")
	if l.useModel(v); p.Model == "" {
		take("provider.model", &p.Model, v.Model, DefaultModelSource)
	}
	if name != "" {
		p.APIKey = key
		l.report.origins["provider.api_key"] = Origin{Source: "env " + name}
	}
}

// useModel applies the model in v's variable if none is set.
func (l *loader) useModel(v Preset) {
	if model, from := v.findModel(l.getenv); from != "" && !l.isEnvSet("provider.model") {
		l.cfg.Provider.Model, l.report.origins["provider.model"] = model, Origin{Source: "env " + from}
	}
}

func sameServer(a, b string) bool {
	ua, err := url.Parse(a)
	if err != nil || ua.Host == "" {
		return false
	}
	ub, err := url.Parse(b)
	return err == nil && ua.Scheme == ub.Scheme && strings.EqualFold(ua.Host, ub.Host)
}
