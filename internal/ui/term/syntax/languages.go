package syntax

import (
	"strings"
	"sync"

	"coder/internal/ui/term/ink"
)

// language describes the syntax of a language.
type language struct {
	names       string // usual names, separated by spaces
	comments    []string
	quotes      []quote
	keywords    string // separated by spaces
	consts      string // words colored like numbers
	ignoreCase  bool   // keywords ignore case
	dashInWords bool   // words may contain a dash
	hasKeys     bool   // a word before a colon or an equals sign is a key

	once      sync.Once
	wordRoles map[string]ink.Role
}

// quote is an element with its own opening and closing signs.
type quote struct {
	start, end string
	role       ink.Role
	escape     byte // the byte that escapes the next; 0: none
	multiline  bool // may span several lines
	matches    func(rest string) bool
}

func stringQuote(sign string) quote {
	return quote{start: sign, end: sign, role: ink.String, escape: '\\'}
}

// rawQuote returns a string without escapes that may span lines.
func rawQuote(sign string) quote {
	return quote{start: sign, end: sign, role: ink.String, multiline: true}
}

// longQuote returns a string with escapes that may span lines.
func longQuote(sign string) quote {
	return quote{start: sign, end: sign, role: ink.String, escape: '\\', multiline: true}
}

func commentQuote(from, to string) quote {
	return quote{start: from, end: to, role: ink.Comment, multiline: true}
}

// charQuote returns a character in single quotes, which elsewhere mark lifetimes and the like.
func charQuote() quote {
	q := stringQuote("'")
	q.matches = func(rest string) bool {
		if strings.HasPrefix(rest, `'\`) {
			return true
		}
		end := strings.IndexByte(rest[1:], '\'')
		return end > 0 && end <= len("世")+1
	}
	return q
}

var (
	slashComments = []string{"//"}
	hashComments  = []string{"#"}
	starComment   = commentQuote("/*", "*/")
)

var languages = []language{
	{names: "go golang", comments: slashComments, quotes: []quote{starComment, stringQuote(`"`), rawQuote("`"), charQuote()},
		keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var",
		consts:   "true false nil iota"},
	{names: "python py python3", comments: hashComments, quotes: []quote{longQuote(`"""`), longQuote("'''"), stringQuote(`"`), stringQuote("'")},
		keywords: "and as assert async await break class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield case",
		consts:   "True False None self"},
	{names: "javascript js jsx mjs cjs typescript ts tsx node", comments: slashComments, quotes: []quote{starComment, stringQuote(`"`), stringQuote("'"), longQuote("`")},
		keywords: "abstract as async await break case catch class const continue debugger default delete do else enum export extends finally for from function get if implements import in instanceof interface keyof let new of private protected public readonly return set static super switch throw try type typeof var void while with yield declare namespace satisfies",
		consts:   "true false null undefined NaN Infinity this"},
	{names: "java kotlin kt scala cs csharp c# swift dart groovy gradle", comments: slashComments,
		quotes:   []quote{starComment, longQuote(`"""`), stringQuote(`"`), charQuote()},
		keywords: "abstract as async await break case catch class const continue data default do else enum explicit extends extension final finally fun func for foreach get goto guard if implements import in init interface internal is let lazy namespace native new object open operator out override package private protected protocol public readonly record ref return sealed set static struct super suspend switch synchronized throw throws trait try type using val var virtual void volatile when where while yield boolean byte char double float int long short string",
		consts:   "true false null nil this self"},
	{names: "c h cpp c++ cc cxx hpp hh objc arduino", comments: slashComments,
		quotes:   []quote{starComment, stringQuote(`"`), charQuote()},
		keywords: "alignas auto bool break case catch char class const consteval constexpr continue decltype default delete do double else enum explicit export extern float for friend goto if inline int long mutable namespace new noexcept operator private protected public register return short signed sizeof static static_assert struct switch template this throw try typedef typename union unsigned using virtual void volatile while",
		consts:   "true false NULL nullptr"},
	{names: "rust rs", comments: slashComments, quotes: []quote{starComment,
		{start: `r#"`, end: `"#`, role: ink.String, multiline: true}, longQuote(`"`), charQuote()},
		keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return static struct super trait type union unsafe use where while",
		consts:   "true false self Self None Some Ok Err"},
	{names: "sh bash shell zsh console shellsession fish dockerfile docker makefile make", comments: hashComments,
		quotes: []quote{longQuote(`"`), {start: "'", end: "'", role: ink.String, multiline: true}}, dashInWords: true,
		keywords: "if then else elif fi case esac for while until do done in function select time export local readonly return exit set unset source alias eval exec trap FROM RUN CMD COPY ADD ENV ARG WORKDIR EXPOSE ENTRYPOINT USER VOLUME LABEL HEALTHCHECK",
		consts:   "true false"},
	{names: "json jsonc json5 jsonl", comments: slashComments,
		quotes: []quote{starComment, stringQuote(`"`), stringQuote("'")}, consts: "true false null"},
	{names: "yaml yml", comments: hashComments, quotes: []quote{stringQuote(`"`), stringQuote("'")},
		consts: "true false null yes no on off", dashInWords: true, hasKeys: true},
	{names: "toml ini conf cfg properties env dotenv", comments: []string{"#", ";"},
		quotes: []quote{longQuote(`"""`), rawQuote("'''"), stringQuote(`"`), {start: "'", end: "'", role: ink.String}},
		consts: "true false", dashInWords: true, hasKeys: true},
	{names: "sql mysql postgres postgresql sqlite plsql", comments: []string{"--"}, quotes: []quote{starComment, {start: "'", end: "'", role: ink.String, multiline: true}, stringQuote(`"`), stringQuote("`")}, ignoreCase: true,
		keywords: "add all alter and as asc begin between by case cast check column commit constraint create cross database default delete desc distinct drop else end except exists explain foreign from full function grant group having if in index inner insert intersect into is join key left like limit not offset on or order outer over partition primary recursive references returning right rollback select set table then trigger union unique update using values view when where with",
		consts:   "true false null"},
	{names: "ruby rb", comments: hashComments, quotes: []quote{stringQuote(`"`), stringQuote("'")},
		keywords: "alias and begin break case class def defined do else elsif end ensure extend for if in include module next not or raise redo require require_relative rescue retry return super then undef unless until when while yield attr_accessor attr_reader attr_writer private protected public",
		consts:   "true false nil self"},
	{names: "php", comments: []string{"//", "#"}, quotes: []quote{starComment, stringQuote(`"`), stringQuote("'")}, ignoreCase: true,
		keywords: "abstract and as break case catch class clone const continue declare default do echo else elseif empty endfor endforeach endif endwhile enum extends final finally fn for foreach function global goto if implements include instanceof interface isset list match namespace new or print private protected public readonly require require_once return static switch throw trait try unset use var while yield",
		consts:   "true false null $this"},
	{names: "lua", comments: []string{"--"}, quotes: []quote{{start: "--[[", end: "]]", role: ink.Comment, multiline: true}, {start: "[[", end: "]]", role: ink.String, multiline: true}, stringQuote(`"`), stringQuote("'")},
		keywords: "and break do else elseif end for function goto if in local not or repeat return then until while", consts: "true false nil self"},
	{names: "html xml svg vue htm xhtml", quotes: []quote{commentQuote("<!--", "-->"), longQuote(`"`)}, dashInWords: true, hasKeys: true},
	{names: "css scss less sass", comments: slashComments, quotes: []quote{starComment, stringQuote(`"`), stringQuote("'")}, dashInWords: true, hasKeys: true},
}

// languageByName maps every name to its language.
var languageByName = sync.OnceValue(func() map[string]*language {
	all := make(map[string]*language)
	for i := range languages {
		for _, name := range strings.Fields(languages[i].names) {
			all[name] = &languages[i]
		}
	}
	return all
})

// wordRole returns the role of a word, given the text after it.
func (l *language) wordRole(w, after string) ink.Role {
	l.once.Do(func() {
		l.wordRoles = make(map[string]ink.Role)
		for w := range strings.FieldsSeq(l.keywords) {
			l.wordRoles[w] = ink.Keyword
		}
		for w := range strings.FieldsSeq(l.consts) {
			l.wordRoles[w] = ink.Number
		}
	})
	key := w
	if l.ignoreCase {
		key = strings.ToLower(w)
	}
	if r, ok := l.wordRoles[key]; ok {
		return r
	}
	if l.hasKeys && after != "" && (after[0] == ':' || after[0] == '=') {
		return ink.Name
	}
	return ink.Plain
}

// isWordByte reports whether c may be part of a word.
func (l *language) isWordByte(c byte) bool {
	return isLetter(c) || c >= '0' && c <= '9' || l.dashInWords && c == '-'
}
