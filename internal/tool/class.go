package tool

import "slices"

// Class is what a tool is for. Whoever decides about tools looks at it, or at the plan of
// a call, and never at a name.
type Class uint8

// The classes. A tool that no decision is about has the zero one, as those of other
// programs do.
const (
	Unclassed    Class = iota
	ReadsFile          // by its path
	ListsFolder        // by its path
	FindsFiles         // by their names
	SearchesText       // in files
	SearchesCode
	NavigatesCode
	EditsFile    // one
	PatchesFiles // many
	RunsShell    // the command line under "command"
	WatchesJobs  // that the shell runs in the background
	ReadsGit
	ChangesGit
	Fetches
	ReadsTodos
	WritesTodos
	AsksPerson
	EndsPlan
	LoadsSkill
	Delegates   // to another agent
	FindsTools  // that are not offered yet
	GivesAnswer // in the form that was asked for
	KeepsMemory // that the person owns
)

type ours struct {
	name  string
	class Class
	group string
	about string
}

// own are our own tools: their names in calls, rules and records, and what they do in a
// few words for people. Tools of a group are offered under its name.
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

// ClassOf is the class of the tool of ours that a call or a record names.
func ClassOf(name string) Class { return ourOwn(name).class }

// Brief is what a tool of ours does, for people; "" if it is none.
func Brief(name string) string { return ourOwn(name).about }

// Names are the names of our own tools of some classes; of all if none is named.
func Names(classes ...Class) (names []string) {
	for _, t := range own {
		if len(classes) == 0 || slices.Contains(classes, t.class) {
			names = append(names, t.name)
		}
	}
	return names
}

// InGroup are the names of our own tools that are offered under the name of a group.
func InGroup(group string) (names []string) {
	for _, t := range own {
		if group != "" && t.group == group {
			names = append(names, t.name)
		}
	}
	return names
}

// First is the name of the first tool of a class, and whether it is there and switched on.
func (s Set) First(c Class) (name string, on bool) {
	for _, spec := range s.specs {
		if spec.Class == c {
			return spec.Name, !s.Off(spec.Name)
		}
	}
	return "", false
}
