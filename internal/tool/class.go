package tool

import "slices"

// Class is the purpose of a tool. Decisions about tools depend on
// the class or on the plan of a call, never on the name.
type Class uint8

// The classes. A tool that no decision depends on has the zero class, as do the tools of other programs.
const (
	Unclassed    Class = iota
	ReadsFile          // by its path
	ListsFolder        // by its path
	FindsFiles         // by name
	SearchesText       // in files
	SearchesCode
	NavigatesCode
	EditsFile    // one file
	PatchesFiles // several files
	EditsNotebook
	RunsShell   // the command line under "command"
	WatchesJobs // background jobs of the shell
	ReadsGit
	ChangesGit
	Fetches
	ReadsTodos
	WritesTodos
	AsksPerson
	EndsPlan
	LoadsSkill
	Delegates   // to another agent
	FindsTools  // tools that are not advertised yet
	GivesAnswer // in the requested form
	KeepsMemory // the user's memory
)

type ours struct {
	name  string
	class Class
	group string
	about string
}

// own are coder's own tools: their names in calls, rules and records, and short descriptions for users.
// Tools of a group are advertised under the group's name.
var own = []ours{
	{"read", ReadsFile, "", "read a file"},
	{"list", ListsFolder, "", "list a folder"},
	{"glob", FindsFiles, "", "find files by name"},
	{"grep", SearchesText, "", "search the lines of files with a regular expression"},
	{"search_code", SearchesCode, "", "find code by meaning"},
	{"bash", RunsShell, "", "run a command in the sandbox, with approval by rule and risk"},
	{"jobs", Unclassed, "", "manage background commands"},
	{"jobs_list", WatchesJobs, "jobs", ""},
	{"job_read", WatchesJobs, "jobs", ""},
	{"job_stop", WatchesJobs, "jobs", ""},
	{"git_status", ReadsGit, "", "show the branch and what changed since the last commit"},
	{"git_diff", ReadsGit, "", "show changes as a diff"},
	{"git_log", ReadsGit, "", "list commits, the newest first"},
	{"git_add", ChangesGit, "", "stage files for the next commit"},
	{"git_commit", ChangesGit, "", "commit what is staged"},
	{"fetch", Fetches, "", "fetch a page or a file from the web"},
	{"lsp", NavigatesCode, "", "ask a language server about code"},
	{"lsp_definition", Unclassed, "lsp", ""},
	{"lsp_references", Unclassed, "lsp", ""},
	{"lsp_hover", Unclassed, "lsp", ""},
	{"lsp_diagnostics", Unclassed, "lsp", ""},
	{"todoread", ReadsTodos, "", "read the todo list"},
	{"todowrite", WritesTodos, "", "write the todo list"},
	{"skill", LoadsSkill, "", "load instructions for one kind of work"},
	{"memory", KeepsMemory, "", "read your memory, or propose an entry"},
	{"write", EditsFile, "", "create or replace a file"},
	{"edit", EditsFile, "", "replace text in a file"},
	{"notebook_edit", EditsNotebook, "", "change a cell of a Jupyter notebook"},
	{"patch", PatchesFiles, "", "change several places or files at once, all or nothing"},
	{"task", Delegates, "", "delegate work to another agent"},
	{"question", AsksPerson, "", "ask you what only you can decide"},
	{"exit_plan_mode", EndsPlan, "", "submit the finished plan to you"},
	{"tool_search", FindsTools, "", "find more tools of MCP servers"},
	{"structured_output", GivesAnswer, "", ""},
}

func ourOwn(name string) ours {
	i := slices.IndexFunc(own, func(t ours) bool { return t.name == name })
	if i < 0 {
		return ours{}
	}
	return own[i]
}

// ClassOf returns the class of coder's own tool with the name in a call or record.
func ClassOf(name string) Class { return ourOwn(name).class }

// Brief returns a short description of coder's own tool for users, or "" for any other name.
func Brief(name string) string { return ourOwn(name).about }

// Names returns the names of coder's own tools of some classes, or of all classes.
func Names(classes ...Class) (names []string) {
	for _, t := range own {
		if len(classes) == 0 || slices.Contains(classes, t.class) {
			names = append(names, t.name)
		}
	}
	return names
}

// InGroup returns the names of coder's own tools that are advertised under a group's name.
func InGroup(group string) (names []string) {
	for _, t := range own {
		if group != "" && t.group == group {
			names = append(names, t.name)
		}
	}
	return names
}

// First returns the name of the first tool of a class, and whether it exists and is on.
func (s Set) First(c Class) (name string, on bool) {
	for _, spec := range s.specs {
		if spec.Class == c {
			return spec.Name, !s.Off(spec.Name)
		}
	}
	return "", false
}
