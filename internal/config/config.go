// Package config combines defaults, files, the environment and flags into one plain value. It guarantees:
//
//   - every setting has one default, in [Default];
//   - a stronger layer takes precedence key by key: defaults, the user's file,
//     the project's file, the file given by flag, the environment, flags;
//   - an error names file, line, column and key, and for an unknown key the
//     nearest existing one;
//   - the origin of every value is known;
//   - an untrusted project can only make settings stricter, and cannot set
//     an address, key, command or instructions.
//
// It keeps no state between calls.
package config

import "encoding/json"

// The tags of a setting:
//
//	json     its name in files
//	doc      what it is for
//	enum     its valid values, the strictest first
//	range    the smallest and the largest value, as "1..10"
//	project  what an untrusted project may do with it: "free" to set it,
//	         "stricter" to move it towards the first of enum, "lower" to make
//	         a number smaller, "off" to turn it off, "adds" to add to a list,
//	         as every file does, "narrower" to keep some of the hosts;
//	         without the tag, nothing. "never" is for a setting that not
//	         even a trusted project may set
//	managed  how managed settings limit it, if not in the same way as
//	         project: "least" to make a number smaller where 0 means no limit,
//	         "fewer" to keep some entries of a list, or a value of project
//	shell    "yes" if a shell reads it, so that ${VAR} is left to the shell
//	layers   "join" if the lists of all files count; [Report.Parts] has the
//	         list of each
//	form     "address" if it must be the address of a web server
//	secret   "yes" if users should not see it
//	endpoint "yes" if it is for one endpoint, and does not apply to another

// Config contains every setting.
type Config struct {
	Provider     Provider                   `json:"provider" doc:"the model and its endpoint"`
	Profile      string                     `json:"profile" doc:"the profile in use; empty means none"`
	Profiles     map[string]json.RawMessage `json:"profiles" doc:"named variants of provider, of which one can be chosen" shell:"yes"`
	Discovery    Discovery                  `json:"discovery" doc:"how coder looks for models"`
	Runtime      Runtime                    `json:"runtime" doc:"limits of a turn"`
	Safety       Safety                     `json:"safety" doc:"limits on commands"`
	Compaction   Compaction                 `json:"compaction" doc:"how a long conversation is shortened"`
	Workflow     Workflow                   `json:"workflow" doc:"todo lists, verification and plans"`
	Approval     Approval                   `json:"approval" doc:"how coder asks for approval"`
	Permission   Permission                 `json:"permission" doc:"what each tool may do: allow, ask or deny"`
	Agents       Agents                     `json:"agents" doc:"modes of work"`
	Skills       Skills                     `json:"skills" doc:"where skills are found"`
	Instructions []string                   `json:"instructions" doc:"more rule files for the model, or patterns (**/RULES.md): below the workspace, absolute, or starting with ~/; a pattern that starts with ! excludes files"`
	Storage      Storage                    `json:"storage" doc:"how sessions are saved"`
	Tools        Tools                      `json:"tools" doc:"how tools are presented to the model"`
	LSP          LSP                        `json:"lsp" doc:"language servers"`
	Fetch        Fetch                      `json:"fetch" doc:"limits on web fetches"`
	MCPServers   map[string]json.RawMessage `json:"mcpServers" doc:"MCP servers by name: {command, args, env} or {url, headers}, and trust_hints, confined, timeout, alwaysLoad, disabled"`
	Hooks        map[string]json.RawMessage `json:"hooks" doc:"commands run on events, by event: lists of {matcher, hooks: [{type: command, command, timeout}]}" shell:"yes" layers:"join"`
	UI           UI                         `json:"ui" doc:"language and colours"`
	Update       Update                     `json:"update" doc:"newer versions of coder"`
}

// Provider selects the model and the endpoint.
type Provider struct {
	Preset         string                     `json:"preset" doc:"a known endpoint; sets the address, the wire, and the key's variable" enum:"|openai|openrouter|deepseek|dashscope|anthropic|gemini|groq|xai|mistral|zai|moonshot|azure|ollama|llamacpp|vllm|lmstudio" endpoint:"yes"`
	Kind           string                     `json:"kind" doc:"the wire the endpoint speaks" enum:"openai|responses|anthropic|gemini" endpoint:"yes"`
	BaseURL        string                     `json:"base_url" doc:"address of the API; empty means that of the vendor whose key coder finds" form:"address" endpoint:"yes"`
	Model          string                     `json:"model" doc:"name of the model; empty means the preset's default, if it has one" project:"free" endpoint:"yes"`
	Models         []string                   `json:"models" doc:"models to choose from" endpoint:"yes"`
	ModelInfo      map[string]json.RawMessage `json:"model_info" doc:"properties of models by name: context, output, price_in, price_out, price_cached, price_cache_write (dollars per million tokens), vision, tools, reasoning, refuses, efforts, temperature; and effort and max_output, used for that model"`
	FallbackModels []string                   `json:"fallback_models" doc:"models to try in turn when the model is unavailable" endpoint:"yes"`
	APIKey         string                     `json:"api_key" doc:"API key" secret:"yes" endpoint:"yes"`
	KeyHeader      string                     `json:"key_header" doc:"header that carries the key; empty means the wire's default" endpoint:"yes"`
	APIKeyCommand  Command                    `json:"api_key_command" doc:"a command that prints the API key: a list of words, or a shell line; coder runs it when it first needs the key, and again if the key is refused" shell:"yes" project:"never" endpoint:"yes"`
	KeyStore       string                     `json:"key_store" doc:"where coder setup saved the key of the server at base_url: the keychain of the system, or a file in ~/.coder/api-keys" enum:"|keychain|file" project:"never" endpoint:"yes"`
	CertFile       string                     `json:"cert_file" doc:"PEM file of the client certificate" project:"never" endpoint:"yes"`
	KeyFile        string                     `json:"key_file" doc:"PEM file of that certificate's private key" project:"never" endpoint:"yes"`
	Query          map[string]string          `json:"query" doc:"extra query parameters of each request" secret:"yes" endpoint:"yes"`
	Proxy          string                     `json:"proxy" doc:"proxy address (http, https or socks5), used instead of the environment's, except for this machine and the hosts in NO_PROXY; none means no proxy" secret:"yes" project:"never" endpoint:"yes"`
	Effort         string                     `json:"effort" doc:"reasoning effort, where the model supports it; empty means the model's default" enum:"|none|minimal|low|medium|high|xhigh|max" endpoint:"yes"`
	Temperature    float64                    `json:"temperature" doc:"sampling temperature, from 0; -1 means the vendor's recommendation" range:"-1..2" endpoint:"yes"`
	MaxOutput      int                        `json:"max_output" doc:"longest reply, in tokens; 0 means the model's default" range:"0..10000000" endpoint:"yes"`
	TimeoutMS      int                        `json:"timeout_ms" doc:"longest whole request; 0 means no limit" range:"0..86400000"`
	IdleTimeoutMS  int                        `json:"idle_timeout_ms" doc:"provider silence that counts as a failure; 0 means no limit" range:"0..86400000"`
	IdleTimeout    string                     `json:"idle_timeout" doc:"longest wait for more of a reply, in silence or with only keep-alives, such as 5m; 0 means no limit. If only idle_timeout_ms is set, the longer of the two applies"`
	MaxRetries     int                        `json:"max_retries" doc:"retries after a temporary failure" range:"0..100"`
	Headers        map[string]string          `json:"headers" doc:"extra headers of each request" secret:"yes" endpoint:"yes"`
	ToolMode       string                     `json:"tool_mode" doc:"how tools are called: by the API, as text in the reply, or by the API with text also accepted" enum:"native|auto|xml" endpoint:"yes"`
	CAFile         string                     `json:"ca_file" doc:"PEM file of additional certificate authorities to trust"`
	Vision         bool                       `json:"vision" doc:"the model accepts images"`
	SendReasoning  bool                       `json:"send_reasoning" doc:"send the model its earlier thinking where the API accepts it"`
}

// Command is the words of a command. In a file it is a list of words, or a shell line.
type Command []string

// Discovery says how to look for models.
type Discovery struct {
	Local     []string `json:"local" doc:"addresses where coder looks for servers on this machine"`
	TimeoutMS int      `json:"timeout_ms" doc:"how long a server on this machine may take to answer" range:"1..60000"`
}

// Runtime limits a turn.
type Runtime struct {
	WorkspaceRoot     string `json:"workspace_root" doc:"the workspace; empty means the working directory"`
	MaxSteps          int    `json:"max_steps" doc:"model calls in one turn" range:"1..1000000" project:"lower"`
	ContextTokenLimit int    `json:"context_token_limit" doc:"most tokens in a conversation; 0 means the model's limit" range:"0..100000000" managed:"least"`
	Tools             string `json:"tools" doc:"tool descriptions in each request: short ones of the everyday tools, all of them, or the short ones where the server's window is under 16k tokens; tools without a description still run" enum:"lean|auto|full" project:"free"`
	Budget            Budget `json:"budget" doc:"what a session may spend on models, including subtasks and earlier runs; a turn stops before the request that would exceed it"`
}

// Budget limits what a session may spend on models.
type Budget struct {
	USD      float64 `json:"usd" doc:"dollars; 0 means no limit" range:"0..1000000000" managed:"least"`
	Tokens   int     `json:"tokens" doc:"tokens of requests and replies; 0 means no limit" range:"0..1000000000000" managed:"least"`
	Duration string  `json:"duration" doc:"running time of turns, without waiting for people, such as 30m; empty means no limit"`
}

// Safety limits commands.
type Safety struct {
	CommandTimeoutMS int      `json:"command_timeout_ms" doc:"longest run of a command" range:"1..86400000" project:"lower"`
	OutputLimitBytes int      `json:"output_limit_bytes" doc:"output of a command that is saved" range:"1..1073741824" project:"lower"`
	Network          Network  `json:"network" doc:"what confined commands may reach, never in plan mode: true (the network), false (nothing), or a list of hosts, such as registry.example.org, *.example.org or example.org:8080" project:"narrower"`
	Writable         []string `json:"writable" doc:"more folders that confined commands may write to" managed:"fewer"`
	EnvAllow         []string `json:"env_allow" doc:"variables passed to commands although they look like secrets" managed:"fewer"`
	MemoryLimitMB    int      `json:"memory_limit_mb" doc:"memory that a command you did not approve may use; -1 means half of this machine's, 0 no limit" range:"-1..16777216"`
	MaxProcesses     int      `json:"max_processes" doc:"processes and threads that a command you did not approve may run; 0 means no limit" range:"0..4194304" managed:"least"`
	Sandbox          string   `json:"sandbox" doc:"confine commands: always or fail, where possible, or never" enum:"require|auto|off" project:"stricter"`
}

// Compaction says how to shorten a long conversation.
type Compaction struct {
	Auto           bool    `json:"auto" doc:"compact when the conversation nears its limit"`
	Prune          bool    `json:"prune" doc:"drop old tool output first"`
	Threshold      float64 `json:"threshold" doc:"share of the limit at which to compact" range:"0..1"`
	RecentMessages int     `json:"recent_messages" doc:"newest messages that stay unchanged" range:"1..100000"`
}

// Workflow has the settings for todo lists, verification and plans.
type Workflow struct {
	RequireTodoForComplex bool     `json:"require_todo_for_complex" doc:"start a todo list for a complex request"`
	AutoVerifyAfterEdit   bool     `json:"auto_verify_after_edit" doc:"run a check after files are edited" project:"off"`
	MaxVerifyAttempts     int      `json:"max_verify_attempts" doc:"failed checks the model may fix in one turn" range:"0..1000" project:"lower"`
	VerifyCommands        []string `json:"verify_commands" doc:"checks to choose from; empty means the built-in ones" shell:"yes"`
	PlanExitMode          string   `json:"plan_exit_mode" doc:"mode after an accepted plan" enum:"default|build|auto-edit"`
	CommitTrailer         string   `json:"commit_trailer" doc:"line at the end of commit messages that the git_commit tool writes, such as Co-authored-by: coder <coder@localhost>; empty means none"`
}

// Approval says how to ask the user.
type Approval struct {
	Interactive             bool     `json:"interactive" doc:"ask questions when a person can answer"`
	AutoApproveAsk          bool     `json:"auto_approve_ask" doc:"allow what only policy would ask about; risks still need approval" project:"off"`
	Bang                    string   `json:"bang" doc:"whether policy applies to your own ! commands" enum:"policy|direct" project:"stricter"`
	TerminalPrograms        []string `json:"terminal_programs" doc:"programs that get the real terminal after !; !! gives it to any" project:"never"`
	DangerousNoninteractive string   `json:"dangerous_noninteractive" doc:"decision on a risk when nobody can answer" enum:"deny|allow" project:"stricter"`
	OnReject                string   `json:"on_reject" doc:"whether a refused call ends the turn" enum:"stop|continue" project:"stricter"`
}

// Permission says what each tool may do. A verdict is allow, ask or deny.
type Permission struct {
	Default          string   `json:"default" doc:"verdict for tools not listed" enum:"deny|ask|allow" project:"stricter"`
	CommandAllowlist []string `json:"command_allowlist" doc:"commands that run without approval" shell:"yes" managed:"fewer"`
	Frozen           []string `json:"frozen" doc:"paths that no tool and no command may write" project:"adds"`
	AllowlistMatch   string   `json:"allowlist_match" doc:"whether the allowlist has whole commands or command names" enum:"exact|name" project:"stricter"`

	// Tools has the rules of each named tool. In a file, a tool is a key beside
	// the keys above, with a verdict or an object of verdicts by pattern.
	Tools map[string]Rules `json:",inline" doc:"a verdict, or verdicts by pattern" enum:"deny|ask|allow" project:"stricter"`
}

// Rules are verdicts by pattern; "*" matches any use of the tool.
type Rules map[string]string

// Agents has the settings for modes.
type Agents struct {
	Default     string `json:"default" doc:"mode at the start" enum:"plan|build|default|auto-edit|yolo"`
	Plan        Agent  `json:"plan" doc:"changes to plan mode"`
	Build       Agent  `json:"build" doc:"changes to build mode"`
	DefaultMode Agent  `json:"default_mode" doc:"changes to default mode"`
	AutoEdit    Agent  `json:"auto-edit" doc:"changes to auto-edit mode"`
	Yolo        Agent  `json:"yolo" doc:"changes to yolo mode"`
}

// Agent is the user's changes to one mode.
type Agent struct {
	Tools map[string]string `json:"tools" doc:"tools switched on or off, by name: on, off"`
}

// Skills says where to find skills.
type Skills struct {
	Paths []string `json:"paths" doc:"more folders to search"`
}

// Storage says how to save sessions.
type Storage struct {
	Fsync            string `json:"fsync" doc:"which records are synced to disk" enum:"always|decisions|never" project:"stricter"`
	UndoBytes        int    `json:"undo_bytes" doc:"file versions saved for undo; the oldest are deleted first" range:"1048576..1099511627776" project:"lower"`
	RunsBytes        int    `json:"runs_bytes" doc:"command output saved by all sessions together; the oldest ended sessions lose theirs first" range:"1048576..1099511627776" project:"lower"`
	RunsSessionBytes int    `json:"runs_session_bytes" doc:"command output saved by one session; later output is not saved" range:"1048576..1099511627776" project:"lower"`
	CacheBytes       int    `json:"cache_bytes" doc:"cache of coder search; the oldest entries are deleted first" range:"1048576..1099511627776" project:"lower"`
}

// Tools says how to present tools to the model.
type Tools struct {
	Dialect string `json:"dialect" doc:"tool names sent to the model; coder accepts the others too" enum:"native|sema|coauthor"`
	List    string `json:"list" doc:"tools that the model sees: the mode's, or those of all modes, which keeps prompt caches when the mode changes" enum:"mode|all"`
}

// LSP has the settings for language servers.
type LSP struct {
	Servers map[string]json.RawMessage `json:"servers" doc:"servers by name or language: command, args, files (language ids by file ending), root_markers, init, settings, env, disabled"`
}

// Fetch limits fetching from the web.
type Fetch struct {
	TimeoutMS     int  `json:"timeout_ms" doc:"longest fetch" range:"1..86400000" project:"lower"`
	MaxTextBytes  int  `json:"max_text_bytes" doc:"text that is saved" range:"1024..1073741824" project:"lower"`
	MaxImageBytes int  `json:"max_image_bytes" doc:"image that is saved" range:"1024..1073741824" project:"lower"`
	SkipTLSVerify bool `json:"skip_tls_verify" doc:"accept any certificate" project:"off"`

	AllowPrivate bool     `json:"allow_private" doc:"allow fetches from this machine and its network" project:"off"`
	AllowHosts   []string `json:"allow_hosts" doc:"hosts that may be fetched at any address" managed:"fewer"`
}

// UI has the settings for language and screen.
type UI struct {
	Lang  string `json:"lang" doc:"language of messages; empty means the environment's" enum:"|en|zh-CN" project:"free"`
	Color string `json:"color" doc:"when to use colours" enum:"auto|always|never" project:"free"`
	Theme string `json:"theme" doc:"background that the colours are for: dark, light or none (mono); auto asks the terminal, and uses COLORFGBG until it answers" enum:"auto|dark|light|mono" project:"free"`
	// Colors are the user's own colours.
	Colors map[string]string `json:"colors" doc:"your colours in the theme, as #rrggbb or a number of the 256-colour palette, for: dim, tool, good, bad, warn, done, code, link, keyword, string, comment, number, name" project:"free"`
	Links  string            `json:"links" doc:"clickable links, where the terminal is known to support them (auto), in any terminal (on), nowhere (off); never in a pipe" enum:"auto|on|off" project:"free"`
	Plain  bool              `json:"plain" doc:"print plain lines: no spinner, no redrawing, words instead of symbols; for screen readers" project:"free"`

	CtrlC string `json:"ctrl_c" doc:"what Ctrl+C does while a turn runs: quit ends coder, stop stops the turn and a second press ends coder" enum:"quit|stop" project:"never"`
	// Vim, Prompt and Statusline: the prompt, its keys, and the line above it.
	Vim        bool    `json:"vim" doc:"vim's keys for the draft: Esc leads to normal mode, i back" project:"never"`
	Prompt     string  `json:"prompt" doc:"the prompt: full shows context, model and folder in two lines, compact is one short line" enum:"full|compact" project:"never"`
	Statusline Command `json:"statusline" doc:"a command that prints the line above the prompt: a list of words, or a shell line; it reads JSON about the session and gets no API keys" shell:"yes" project:"never"`

	Thinking string `json:"thinking" doc:"what is shown of what the model thinks: all of it (full), or one line with the time (line)" enum:"full|line" project:"never"`

	OutputStyle string `json:"output_style" doc:"how the model writes its answers: default, concise, explain, or a file in an output-styles folder, by name"`

	Title  bool   `json:"title" doc:"show in the window title where coder is, whether it is working (*) and whether it is asking (?)" project:"free"`
	Notify string `json:"notify" doc:"how to alert you when coder asks something or a long turn ends while you look elsewhere: bell, osc9 and osc777 (desktop notifications, where the terminal supports them), off" enum:"bell|osc9|osc777|off" project:"free"`
}

// Update says how coder looks for newer versions of itself.
type Update struct {
	Check bool `json:"check" doc:"look for a newer version once a day, beside the first request at a terminal; nothing is installed" project:"never"`
}

// Default returns the default settings.
func Default() Config {
	return Config{
		Provider: Provider{
			Kind:           "openai",
			Models:         []string{},
			ModelInfo:      map[string]json.RawMessage{},
			FallbackModels: []string{},
			IdleTimeoutMS:  120_000,
			IdleTimeout:    "5m",
			MaxRetries:     4,
			Headers:        map[string]string{},
			ToolMode:       "auto",
			APIKeyCommand:  Command{},
			Query:          map[string]string{},
			Temperature:    -1,
			SendReasoning:  true,
		},
		Profiles:  map[string]json.RawMessage{},
		Discovery: Discovery{Local: localPresetAddresses(), TimeoutMS: 200},
		Runtime:   Runtime{MaxSteps: 128, Tools: "auto"},
		Safety: Safety{
			CommandTimeoutMS: 120_000,
			OutputLimitBytes: 1 << 20,
			Network:          AllHosts,
			Writable:         []string{},
			EnvAllow:         []string{},
			MemoryLimitMB:    -1,
			MaxProcesses:     4096,
			Sandbox:          "auto",
		},
		Compaction: Compaction{
			Auto:           true,
			Prune:          true,
			Threshold:      0.8,
			RecentMessages: 12,
		},
		Workflow: Workflow{
			RequireTodoForComplex: true,
			AutoVerifyAfterEdit:   true,
			MaxVerifyAttempts:     2,
			VerifyCommands:        []string{},
			PlanExitMode:          "default",
		},
		Approval: Approval{
			Interactive:             true,
			Bang:                    "policy",
			TerminalPrograms:        terminalPrograms(),
			DangerousNoninteractive: "deny",
			OnReject:                "continue",
		},
		Permission: Permission{
			Default:          "ask",
			CommandAllowlist: []string{},
			Frozen:           []string{},
			AllowlistMatch:   "name",
			Tools: map[string]Rules{
				"read":  {"*": "allow"},
				"write": {"*": "ask"},
				"bash":  {"*": "ask"},
			},
		},
		Agents: Agents{
			Default: "build",
			Plan:    Agent{Tools: map[string]string{}}, Build: Agent{Tools: map[string]string{}},
			DefaultMode: Agent{Tools: map[string]string{}},
			AutoEdit:    Agent{Tools: map[string]string{}}, Yolo: Agent{Tools: map[string]string{}},
		},
		Skills:       Skills{Paths: []string{}},
		Instructions: []string{},
		Storage: Storage{Fsync: "decisions", UndoBytes: 512 << 20, RunsBytes: 500 << 20, RunsSessionBytes: 200 << 20,
			CacheBytes: 512 << 20},
		Tools: Tools{Dialect: "native", List: "mode"},
		LSP:   LSP{Servers: map[string]json.RawMessage{}},
		Fetch: Fetch{
			TimeoutMS:     30_000,
			MaxTextBytes:  5 << 20,
			MaxImageBytes: 1 << 20,
		},
		MCPServers: map[string]json.RawMessage{},
		Hooks:      map[string]json.RawMessage{},
		UI: UI{Color: "auto", Theme: "auto", Colors: map[string]string{}, Links: "auto", CtrlC: "quit",
			Prompt: "full", Thinking: "full", OutputStyle: "default", Statusline: Command{}, Title: true, Notify: "bell"},
	}
}
