// Package config turns defaults, files, the environment and flags into one
// plain value. It promises that
//
//   - every setting has one default, in [Default];
//   - the stronger layer wins key by key: defaults, the user's file, the
//     project's file, the file given by flag, the environment, flags;
//   - a mistake is named by file, line, column and key, and a key that does not
//     exist by the nearest one that does;
//   - it is known of every value where it came from;
//   - a project nobody trusts can make things stricter, never looser, and can
//     name no address, key, command or text to follow.
//
// It keeps nothing between calls and imports nothing of this program.
package config

import "encoding/json"

// The tags of a setting:
//
//	json     its name in files
//	doc      what it is for
//	enum     the values it may have, the strictest first
//	range    the least and the greatest value, as "1..10"
//	project  what a project that is not trusted may do with it: "free" to set
//	         it, "stricter" to move it towards the first of enum, "lower" to
//	         make a number smaller, "off" to turn it off, "adds" to add to a
//	         list, as every file does, "narrower" to keep some of the hosts;
//	         without the tag, nothing. "never" is
//	         for what not even a project that is trusted may set
//	shell    "yes" if a shell reads it, so that ${VAR} is left to the shell
//	layers   "join" if the lists of all files count; which is whose is told by
//	         [Report.Parts]
//	form     "address" if it must be the address of a web server
//	secret   "yes" if people should not see it
//	endpoint "yes" if it is about one endpoint, and does not hold for another

// Config is every setting.
type Config struct {
	Provider     Provider                   `json:"provider" doc:"the model and how to reach it"`
	Profile      string                     `json:"profile" doc:"the one of profiles that is in use; empty means none"`
	Profiles     map[string]json.RawMessage `json:"profiles" doc:"settings by name, of the same form as provider, of which one can be chosen" shell:"yes"`
	Discovery    Discovery                  `json:"discovery" doc:"how models are looked for"`
	Runtime      Runtime                    `json:"runtime" doc:"how far a turn may go"`
	Safety       Safety                     `json:"safety" doc:"limits on commands"`
	Compaction   Compaction                 `json:"compaction" doc:"how a long conversation is made shorter"`
	Workflow     Workflow                   `json:"workflow" doc:"todo lists, verification and plans"`
	Approval     Approval                   `json:"approval" doc:"how people are asked"`
	Permission   Permission                 `json:"permission" doc:"what each tool may do: allow, ask or deny"`
	Agents       Agents                     `json:"agents" doc:"modes of work"`
	Skills       Skills                     `json:"skills" doc:"where skills are found"`
	Instructions []string                   `json:"instructions" doc:"more files of rules for the model, or patterns (**/RULES.md): below the workspace, absolute, or beginning with ~/; a pattern that begins with ! leaves files out"`
	Storage      Storage                    `json:"storage" doc:"how sessions are kept"`
	Tools        Tools                      `json:"tools" doc:"how tools are presented to the model"`
	LSP          LSP                        `json:"lsp" doc:"language servers"`
	Fetch        Fetch                      `json:"fetch" doc:"limits on fetching from the web"`
	MCPServers   map[string]json.RawMessage `json:"mcpServers" doc:"MCP servers by name: {command, args, env} or {url, headers}, and trust_hints, confined, timeout, alwaysLoad, disabled"`
	Hooks        map[string]json.RawMessage `json:"hooks" doc:"commands run on events, by event: lists of {matcher, hooks: [{type: command, command, timeout}]}" shell:"yes" layers:"join"`
	UI           UI                         `json:"ui" doc:"language and colours"`
}

// Provider is the model and how to reach it.
type Provider struct {
	Preset         string                     `json:"preset" doc:"an endpoint known by name; gives the address, the wire, and the variable of the key" enum:"|openai|openrouter|deepseek|dashscope|anthropic|gemini|groq|xai|mistral|zai|moonshot|azure|ollama|llamacpp|vllm|lmstudio" endpoint:"yes"`
	Kind           string                     `json:"kind" doc:"the wire the endpoint speaks" enum:"openai|responses|anthropic|gemini" endpoint:"yes"`
	BaseURL        string                     `json:"base_url" doc:"address of the API; empty means that of the vendor whose key is found" form:"address" endpoint:"yes"`
	Model          string                     `json:"model" doc:"name of the model; empty means the usual one of the preset, if it has one" project:"free" endpoint:"yes"`
	Models         []string                   `json:"models" doc:"models offered for choice" endpoint:"yes"`
	ModelInfo      map[string]json.RawMessage `json:"model_info" doc:"figures of models by name: context, output, price_in, price_out, price_cached, price_cache_write (dollars for a million tokens), vision, tools, reasoning, refuses, efforts, temperature; and effort and max_output, used for that model"`
	FallbackModels []string                   `json:"fallback_models" doc:"models tried in turn when the model cannot be had" endpoint:"yes"`
	APIKey         string                     `json:"api_key" doc:"key of the API" secret:"yes" endpoint:"yes"`
	KeyHeader      string                     `json:"key_header" doc:"header that carries the key; empty means that of the wire" endpoint:"yes"`
	APIKeyCommand  Command                    `json:"api_key_command" doc:"a command that prints the key of the API: a list of its words, or a line for the shell; run when the key is first needed, and again if it is refused" shell:"yes" project:"never" endpoint:"yes"`
	CertFile       string                     `json:"cert_file" doc:"PEM file of the certificate that the client shows to the server" project:"never" endpoint:"yes"`
	KeyFile        string                     `json:"key_file" doc:"PEM file of the private key of that certificate" project:"never" endpoint:"yes"`
	Query          map[string]string          `json:"query" doc:"more parameters in the address of each request" secret:"yes" endpoint:"yes"`
	Proxy          string                     `json:"proxy" doc:"address of a proxy (http, https or socks5), used instead of those of the environment, save for this machine and what NO_PROXY names; none means that no proxy is used" secret:"yes" project:"never" endpoint:"yes"`
	Effort         string                     `json:"effort" doc:"how hard the model is to think, where it lets one choose; empty leaves it to the model" enum:"|none|minimal|low|medium|high|xhigh|max" endpoint:"yes"`
	Temperature    float64                    `json:"temperature" doc:"how freely the model chooses its words, from 0; -1 leaves it to what its maker recommends" range:"-1..2" endpoint:"yes"`
	MaxOutput      int                        `json:"max_output" doc:"longest reply, in tokens; 0 leaves it to the model" range:"0..10000000" endpoint:"yes"`
	TimeoutMS      int                        `json:"timeout_ms" doc:"longest whole request; 0 means no limit" range:"0..86400000"`
	IdleTimeoutMS  int                        `json:"idle_timeout_ms" doc:"silence of the provider that counts as a fault; 0 means no limit" range:"0..86400000"`
	IdleTimeout    string                     `json:"idle_timeout" doc:"longest wait for more of a reply, in silence or with mere signs of life such as keep-alives, such as 5m; 0 means no limit. If only idle_timeout_ms is set, the longer of the two applies"`
	MaxRetries     int                        `json:"max_retries" doc:"attempts after the first when a failure may pass" range:"0..100"`
	Headers        map[string]string          `json:"headers" doc:"more headers of each request" secret:"yes" endpoint:"yes"`
	ToolMode       string                     `json:"tool_mode" doc:"how tools are called: by the API, as text in the reply, or by the API with text understood" enum:"native|auto|xml" endpoint:"yes"`
	CAFile         string                     `json:"ca_file" doc:"PEM file of certificate authorities to trust as well"`
	Vision         bool                       `json:"vision" doc:"the model can be shown pictures"`
	SendReasoning  bool                       `json:"send_reasoning" doc:"give the model its earlier thinking back where the API takes it"`
}

// Command is the words of a command. In a file it is a list of them, or a line
// for the shell.
type Command []string

// Discovery is how models are looked for.
type Discovery struct {
	Local     []string `json:"local" doc:"addresses where servers of this machine are looked for"`
	TimeoutMS int      `json:"timeout_ms" doc:"how long a server of this machine may take to answer" range:"1..60000"`
}

// Runtime is how far a turn may go.
type Runtime struct {
	WorkspaceRoot     string `json:"workspace_root" doc:"the workspace; empty means the working directory"`
	MaxSteps          int    `json:"max_steps" doc:"model calls in one turn" range:"1..1000000" project:"lower"`
	ContextTokenLimit int    `json:"context_token_limit" doc:"tokens a conversation may have; 0 means what the model can take" range:"0..100000000"`
	Tools             string `json:"tools" doc:"how much the model is told of the tools: the everyday ones in short, all of them, or the first where the server's window is known to be under 16k tokens; what it is not told of runs too" enum:"lean|auto|full" project:"free"`
	Budget            Budget `json:"budget" doc:"what a session may spend on models, its subtasks and earlier runs counted; a turn stops before the request that would exceed it"`
}

// Budget is what a session may spend on models.
type Budget struct {
	USD      float64 `json:"usd" doc:"dollars; 0 means no limit" range:"0..1000000000"`
	Tokens   int     `json:"tokens" doc:"tokens of requests and replies together; 0 means no limit" range:"0..1000000000000"`
	Duration string  `json:"duration" doc:"time that turns take, without waiting for people, such as 30m; empty means no limit"`
}

// Safety is the limits on commands.
type Safety struct {
	CommandTimeoutMS int      `json:"command_timeout_ms" doc:"longest run of a command" range:"1..86400000" project:"lower"`
	OutputLimitBytes int      `json:"output_limit_bytes" doc:"output of a command that is kept" range:"1..1073741824" project:"lower"`
	Network          Network  `json:"network" doc:"what confined commands may reach, never in plan mode: true (the network), false (nothing), or a list of hosts, such as registry.example.org, *.example.org or example.org:8080" project:"narrower"`
	Writable         []string `json:"writable" doc:"more folders that confined commands may write to"`
	EnvAllow         []string `json:"env_allow" doc:"variables that commands get although they look like secrets"`
	MemoryLimitMB    int      `json:"memory_limit_mb" doc:"memory that a command you did not approve may use; -1 means half of this machine's, 0 no limit" range:"-1..16777216"`
	MaxProcesses     int      `json:"max_processes" doc:"processes and threads that a command you did not approve may run; 0 means no limit" range:"0..4194304"`
	Sandbox          string   `json:"sandbox" doc:"confine commands: always or fail, where possible, or not at all" enum:"require|auto|off" project:"stricter"`
}

// Compaction is how a long conversation is made shorter.
type Compaction struct {
	Auto           bool    `json:"auto" doc:"compact when the conversation nears its limit"`
	Prune          bool    `json:"prune" doc:"drop old tool output first"`
	Threshold      float64 `json:"threshold" doc:"share of the limit at which to compact" range:"0..1"`
	RecentMessages int     `json:"recent_messages" doc:"newest messages that stay as they are" range:"1..100000"`
}

// Workflow is todo lists, verification and plans.
type Workflow struct {
	RequireTodoForComplex bool     `json:"require_todo_for_complex" doc:"start a todo list for a complex request"`
	AutoVerifyAfterEdit   bool     `json:"auto_verify_after_edit" doc:"run a check after files were edited" project:"off"`
	MaxVerifyAttempts     int      `json:"max_verify_attempts" doc:"failed checks the model may answer in one turn" range:"0..1000" project:"lower"`
	VerifyCommands        []string `json:"verify_commands" doc:"checks to choose from; empty means known ones" shell:"yes"`
	PlanExitMode          string   `json:"plan_exit_mode" doc:"mode after an accepted plan" enum:"default|build|auto-edit"`
}

// Approval is how people are asked.
type Approval struct {
	Interactive             bool     `json:"interactive" doc:"ask a person where there is one"`
	AutoApproveAsk          bool     `json:"auto_approve_ask" doc:"let pass what policy would ask about; risks are asked about even so" project:"off"`
	Bang                    string   `json:"bang" doc:"whether a person's own ! command meets policy" enum:"policy|direct" project:"stricter"`
	TerminalPrograms        []string `json:"terminal_programs" doc:"programs that have the real terminal behind !; !! gives it to any" project:"never"`
	DangerousNoninteractive string   `json:"dangerous_noninteractive" doc:"what becomes of a risk with nobody to ask" enum:"deny|allow" project:"stricter"`
	OnReject                string   `json:"on_reject" doc:"whether a refused call ends the turn" enum:"stop|continue" project:"stricter"`
}

// Permission is what each tool may do. A verdict is allow, ask or deny.
type Permission struct {
	Default          string   `json:"default" doc:"verdict on tools not named" enum:"deny|ask|allow" project:"stricter"`
	CommandAllowlist []string `json:"command_allowlist" doc:"commands that run without being asked about" shell:"yes"`
	Frozen           []string `json:"frozen" doc:"paths that may be read and never written, by no tool and no command" project:"adds"`
	AllowlistMatch   string   `json:"allowlist_match" doc:"whether the allowlist holds whole commands or names of commands" enum:"exact|name" project:"stricter"`

	// Tools holds the rules of each tool named. In a file each stands beside
	// the keys above, as a verdict or as an object of verdicts by pattern.
	Tools map[string]Rules `json:",inline" doc:"a verdict, or verdicts by pattern" enum:"deny|ask|allow" project:"stricter"`
}

// Rules are verdicts by pattern; "*" stands for any use of the tool.
type Rules map[string]string

// Agents is modes of work.
type Agents struct {
	Default     string `json:"default" doc:"mode at the start" enum:"plan|build|default|auto-edit|yolo"`
	Plan        Agent  `json:"plan" doc:"changes to plan mode"`
	Build       Agent  `json:"build" doc:"changes to build mode"`
	DefaultMode Agent  `json:"default_mode" doc:"changes to default mode"`
	AutoEdit    Agent  `json:"auto-edit" doc:"changes to auto-edit mode"`
	Yolo        Agent  `json:"yolo" doc:"changes to yolo mode"`
}

// Agent is what a person changes about one mode.
type Agent struct {
	Tools map[string]string `json:"tools" doc:"tools switched on or off, by name: on, off"`
}

// Skills is where skills are found.
type Skills struct {
	Paths []string `json:"paths" doc:"more folders to look in"`
}

// Storage is how sessions are kept.
type Storage struct {
	Fsync            string `json:"fsync" doc:"which records are forced to the disk" enum:"always|decisions|never" project:"stricter"`
	UndoBytes        int    `json:"undo_bytes" doc:"what calls overwrote, kept for undo; the oldest goes first" range:"1048576..1099511627776" project:"lower"`
	RunsBytes        int    `json:"runs_bytes" doc:"output of commands that all sessions together keep; that of the oldest ended ones goes first" range:"1048576..1099511627776" project:"lower"`
	RunsSessionBytes int    `json:"runs_session_bytes" doc:"output of commands that one session keeps; what comes later is not saved" range:"1048576..1099511627776" project:"lower"`
	CacheBytes       int    `json:"cache_bytes" doc:"what coder search has read of sessions; the oldest goes first" range:"1048576..1099511627776" project:"lower"`
}

// Tools is how tools are presented to the model.
type Tools struct {
	Dialect string `json:"dialect" doc:"names that are advertised; the others are understood" enum:"native|sema|coauthor"`
}

// LSP is language servers.
type LSP struct {
	Servers map[string]json.RawMessage `json:"servers" doc:"servers by name or language: command, args, files (language ids by file ending), root_markers, init, settings, env, disabled"`
}

// Fetch is limits on fetching from the web.
type Fetch struct {
	TimeoutMS     int  `json:"timeout_ms" doc:"longest fetch" range:"1..86400000" project:"lower"`
	MaxTextBytes  int  `json:"max_text_bytes" doc:"text that is kept" range:"1024..1073741824" project:"lower"`
	MaxImageBytes int  `json:"max_image_bytes" doc:"image that is kept" range:"1024..1073741824" project:"lower"`
	SkipTLSVerify bool `json:"skip_tls_verify" doc:"accept any certificate" project:"off"`

	AllowPrivate bool     `json:"allow_private" doc:"let addresses of this machine and its network be fetched" project:"off"`
	AllowHosts   []string `json:"allow_hosts" doc:"hosts that may be fetched whatever their address is"`
}

// UI is language and colours.
type UI struct {
	Lang  string `json:"lang" doc:"language of messages; empty means that of the environment" enum:"|en|zh-CN" project:"free"`
	Color string `json:"color" doc:"when to use colours" enum:"auto|always|never" project:"free"`
	Theme string `json:"theme" doc:"what colours are chosen for: a dark background, a light one, none (mono); auto asks the terminal, and takes what COLORFGBG says until it answers" enum:"auto|dark|light|mono" project:"free"`
	// Colors are of the person's own choice.
	Colors map[string]string `json:"colors" doc:"own colours in the theme, as #rrggbb or the number of one of 256, for: dim, tool, good, bad, warn, done, code, link, keyword, string, comment, number, name" project:"free"`
	Links  string            `json:"links" doc:"let links be clicked on, where the terminal is known to know how (auto), in any terminal (on), nowhere (off); never in a pipe" enum:"auto|on|off" project:"free"`
	Plain  bool              `json:"plain" doc:"print lines and nothing else: no spinner, nothing drawn again, words instead of signs; for screen readers" project:"free"`

	CtrlC  string `json:"ctrl_c" doc:"what Ctrl+C does while a turn runs: quit ends coder, stop stops the turn and a second press ends coder" enum:"quit|stop" project:"never"`
	Title  bool   `json:"title" doc:"show in the title of the window where coder is, that it works (*) and that it asks (?)" project:"free"`
	Notify string `json:"notify" doc:"how to call for the person when something is asked or a long turn has ended while they look elsewhere: bell, osc9 and osc777 (messages of the desktop, where the terminal has them), off" enum:"bell|osc9|osc777|off" project:"free"`
}

// Default returns the settings that hold where nobody says otherwise.
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
		Discovery: Discovery{Local: localAddresses(), TimeoutMS: 200},
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
			Plan:    Agent{Tools: map[string]string{}}, Build: Agent{Tools: map[string]string{}}, DefaultMode: Agent{Tools: map[string]string{}},
			AutoEdit: Agent{Tools: map[string]string{}}, Yolo: Agent{Tools: map[string]string{}},
		},
		Skills:       Skills{Paths: []string{}},
		Instructions: []string{},
		Storage:      Storage{Fsync: "decisions", UndoBytes: 512 << 20, RunsBytes: 500 << 20, RunsSessionBytes: 200 << 20, CacheBytes: 512 << 20},
		Tools:        Tools{Dialect: "native"},
		LSP:          LSP{Servers: map[string]json.RawMessage{}},
		Fetch: Fetch{
			TimeoutMS:     30_000,
			MaxTextBytes:  5 << 20,
			MaxImageBytes: 1 << 20,
		},
		MCPServers: map[string]json.RawMessage{},
		Hooks:      map[string]json.RawMessage{},
		UI:         UI{Color: "auto", Theme: "auto", Colors: map[string]string{}, Links: "auto", CtrlC: "quit", Title: true, Notify: "bell"},
	}
}
