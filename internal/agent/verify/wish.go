package verify

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// commandPrefix is the beginning of a test command in the middle of a sentence.
// A bare runner that is also plain English does not count as a command.
type commandPrefix struct {
	prefix  string
	inProse bool
}

var commandPrefixes = []commandPrefix{
	{"go test", true}, {"pytest", true}, {"pnpm test", false}, {"npm test", false}, {"yarn test", false},
	{"cargo test", false}, {"mvn -q test", false}, {"mvn test", false}, {"./gradlew test", false}, {"gradle test", false},
}

// quotedPrograms begin a test command in quotes, where every word counts.
var quotedPrograms = []string{
	"go", "pytest", "python", "python3", "tox", "npm", "pnpm", "yarn", "npx", "bun", "deno", "cargo", "mvn", "gradle",
	"./gradlew",
	"make", "just", "task", "ctest", "bazel", "dotnet", "rake", "bundle", "mix",
}

// requestedChecks lists the test commands that the user wants to run, in order.
func requestedChecks(text string) []string {
	var found []string
	from := 0 // the earliest index of the next command
	add := func(command string) {
		at := max(0, strings.Index(text[from:], command)) + from
		from = min(at+len(command), len(text))
		if !slices.Contains(found, command) && !isMention(text, at, from) && !isRejected(text, at) {
			found = append(found, command)
		}
	}
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			words := strings.Fields(part)
			if len(words) > 0 && slices.Contains(quotedPrograms, words[0]) &&
				(words[0] == "pytest" || strings.Contains(part, "test") || strings.Contains(part, "check")) {
				add(strings.TrimSpace(part))
			}
			continue
		}
		// In prose: the runner, and the options and paths after it.
		for i := 0; i < len(part); i++ {
			for _, r := range commandPrefixes {
				if strings.HasPrefix(part[i:], r.prefix) && isWordBounded(part, i, len(r.prefix)) {
					command := r.prefix + commandArguments(part[i+len(r.prefix):])
					if command != r.prefix || !r.inProse {
						add(command)
					}
					i += len(command) - 1
					break
				}
			}
		}
	}
	return found
}

// Words that show that a command is only mentioned: words in the clause before it, and words after it.
var (
	runWords           = []string{"run ", "execute ", "use ", "with ", "verify ", "check ", "跑", "运行", "执行", "用", "验证"}
	mentionWordsBefore = []string{"because", "since ", " why ", "if ", "when ", "output of", "came from", "因为", "由于", "为什么", "如果"}
	mentionWordsAfter  = []string{
		"hang", "fail", "is ", "was ", "are ", "does", "doesn", "did", "take", "print", "say", "report", "complain", "time", "crash", "show", "cannot", "can't", "never", "no longer", "keeps", "still",
		"失败", "报错", "挂", "卡", "超时", "输出", "显示", "不", "会", "很",
	}
)

// isMention reports whether the command from at to end is only mentioned: because go test hangs.
func isMention(text string, at, end int) bool {
	rest := strings.ToLower(strings.TrimLeft(text[end:], "` "))
	if slices.ContainsFunc(mentionWordsAfter, func(w string) bool { return strings.HasPrefix(rest, w) }) {
		return true
	}
	clause := clauseBefore(text, at)
	return slices.ContainsFunc(mentionWordsBefore, func(w string) bool {
		_, then, spoken := strings.Cut(clause, w)
		// when all is done, run it
		wanted := slices.ContainsFunc(runWords, func(o string) bool { return strings.Contains(then, o) })
		return spoken && !wanted
	})
}

// isWordBounded reports whether the n bytes at i are separate words.
func isWordBounded(text string, i, n int) bool {
	word := func(c byte) bool {
		return c == '_' || c == '-' || c == '/' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
	}
	return (i == 0 || !word(text[i-1]) && text[i-1] != '.') && (i+n == len(text) || !word(text[i+n]))
}

// commandArguments returns the beginning of text that still belongs to the command before it.
func commandArguments(text string) string {
	var b strings.Builder
	whole := func() string { return strings.TrimRight(b.String(), " |&><") }
	for {
		rest := strings.TrimLeft(text, " ")
		if len(rest) == len(text) {
			return whole()
		}
		word := rest
		if end := strings.IndexFunc(rest, func(r rune) bool { return r <= ' ' || r >= utf8.RuneSelf }); end >= 0 {
			word = rest[:end]
		}
		cut := strings.TrimRight(word, `,;:!?)]}*"'`)
		if strings.HasSuffix(cut, "....") || !strings.HasSuffix(cut, "...") {
			cut = strings.TrimSuffix(cut, ".")
		}
		joined := strings.HasSuffix(b.String(), "|") || strings.HasSuffix(b.String(), "&") // to the next word
		if cut == "" || !strings.HasPrefix(cut, "-") && !strings.ContainsAny(cut, "/=|&><") && !joined {
			return whole()
		}
		b.WriteString(" " + cut)
		if cut != word {
			return whole()
		}
		text = rest[len(word):]
	}
}

// checkRequests are phrases that ask for a check.
var checkRequests = []string{
	"run the test", "run test", "run all test", "run your test", "run unit test", "run the unit test", "run the suite",
	"run the test suite", "rerun the test", "re-run the test", "execute the test", "tests pass", "test passes",
	"tests are green",
	"test your change", "test the change", "test it", "please verify", "and verify", "then verify", "verify it",
	"verify that",
	"verify the", "verify your", "verify by", "verify with", "verify afterwards", "run verification",
	"run the verification",
	"执行验证", "进行验证", "请验证", "并验证", "再验证", "后验证", "验证一下", "验证通过", "验证修改", "验证改动", "做验证", "跑验证", "自动验证", "需要验证",
	"跑测试", "跑一下测试", "跑一遍测试", "跑下测试", "运行测试", "执行测试", "跑单测", "跑单元测试", "运行单元测试", "测试一下", "测一下", "测试通过", "通过测试",
}

// falseRequests lists words that only look like a request.
var falseRequests = []string{"验证码"}

// negations before a request in the same clause reverse it.
var (
	negations = []string{"don't", "dont", "do not", "don’t", "not ", "never", "without", "no need", "skip", "不", "别",
		"勿", "无需", "无须", "跳过", "没有必要"}
	affirmations = []string{"forget", "忘", "不仅", "不但", "不只"}
)

// IsRequested reports whether the user asks in English or Chinese for a check, or names a command for it.
func IsRequested(text string) bool {
	if len(requestedChecks(text)) > 0 {
		return true
	}
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, word := range falseRequests {
		text = strings.ReplaceAll(text, word, "")
	}
	if strings.HasPrefix(text, "verify") && !strings.HasPrefix(text, "verify_") {
		return true
	}
	return slices.ContainsFunc(checkRequests, func(wish string) bool {
		return anyOccurrence(text, wish, func(at int) bool { return !isRejected(text, at) })
	})
}

// anyOccurrence reports whether holds is true at any occurrence of word in text.
func anyOccurrence(text, word string, holds func(at int) bool) bool {
	for from := 0; ; from += len(word) {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		if from += i; holds(from) {
			return true
		}
	}
}

// maxClauseBytes limits how many bytes before a request can reverse it.
const maxClauseBytes = 200

// isRejected reports whether the clause before i rejects what is at i.
func isRejected(text string, i int) bool {
	clause := clauseBefore(text, i)
	has := func(word string) bool { return strings.Contains(clause, word) }
	return slices.ContainsFunc(negations, has) && !slices.ContainsFunc(affirmations, has)
}

// clauseBefore returns the part of the clause before i.
func clauseBefore(text string, i int) string {
	clause := strings.ToLower(text[max(0, i-maxClauseBytes):i])
	if j := strings.LastIndexAny(clause, "，。；、,.;!?！？\n"); j >= 0 {
		clause = clause[j:]
	}
	return clause
}

// declinePhrases are the negations in instructions not to do something.
var declinePhrases = []string{"don't", "dont", "do not", "don’t", "without", "no need", "skip", "不要", "不用", "先不", "别",
	"勿", "无需", "无须", "跳过"}

// IsDeclined reports whether the user says not to run tests: do not run pytest yet, 先不要跑测试.
func IsDeclined(text string) bool {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	declined := func(what string, also ...string) bool {
		return anyOccurrence(text, what, func(at int) bool {
			clause := clauseBefore(text, at)
			has := func(word string) bool { return strings.Contains(clause, word) }
			return slices.ContainsFunc(declinePhrases, has) && !slices.ContainsFunc(affirmations, has) &&
				(also == nil || slices.ContainsFunc(also, has))
		})
	}
	for _, r := range commandPrefixes {
		if declined(r.prefix, "run", "execut", "skip", "跑", "运行", "执行", "跳过") {
			return true
		}
	}
	return slices.ContainsFunc(checkRequests, func(wish string) bool {
		return !strings.Contains(wish, "pass") && !strings.Contains(wish, "通过") && !strings.Contains(wish, "green") &&
			declined(wish)
	}) || declined("running the test") || declined("running test") || declined("running any test") ||
		declined("run any test")
}
