package preset

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// service is a preset that is the same everywhere.
type service struct {
	name, meaning, rules, warning string
}

func (s service) preset() Preset {
	return Preset{Name: s.name, Meaning: s.meaning, Rules: strings.Fields(s.rules), Warning: s.warning}
}

// The warnings of services where strangers have accounts: writing there can
// take data out.
const (
	sharedCode   = "anybody can have a repository there, so what reads it can also send data out; limit it to what is needed"
	sharedModel  = "what is sent in prompts leaves this machine"
	sharedModels = "anybody can publish there, so what reads it can also send data out"

	sharedExtensions = "anybody can publish extensions there, and they run inside"
)

// services is the table of model providers, code hosts and editors.
//
// To add one: a line here, with hosts from the provider's own documentation.
func services() []service {
	return []service{
		{"anthropic", "the Claude API", "api.anthropic.com", sharedModel},
		{"claude-login", "signing in to Claude Code with an account", "claude.ai platform.claude.com console.anthropic.com", sharedModel},
		{"claude", "what Claude Code needs: the Claude API, and renewing its login", "api.anthropic.com platform.claude.com", sharedModel},
		{"codex", "what Codex needs: the OpenAI API, and renewing its login", "api.openai.com chatgpt.com auth.openai.com", sharedModel},
		{"gemini", "what Gemini CLI needs: the Gemini API, and renewing its login", "generativelanguage.googleapis.com cloudcode-pa.googleapis.com oauth2.googleapis.com", sharedModel},
		{"opencode", "what OpenCode needs besides the API of its model: its list of models, and its own gateway", "models.dev opencode.ai", sharedModel},
		{"openai", "the OpenAI API", "api.openai.com", sharedModel},
		{"openai-login", "signing in to Codex with an account", "auth.openai.com chatgpt.com", sharedModel},
		{"google", "the Gemini API", "generativelanguage.googleapis.com", sharedModel},
		{"google-login", "signing in to Gemini with an account", "accounts.google.com oauth2.googleapis.com cloudcode-pa.googleapis.com", sharedModel},
		{"mistral", "the Mistral API", "api.mistral.ai", sharedModel},
		{"deepseek", "the DeepSeek API", "api.deepseek.com", sharedModel},
		{"groq", "the Groq API", "api.groq.com", sharedModel},
		{"xai", "the xAI API", "api.x.ai", sharedModel},
		{"cohere", "the Cohere API", "api.cohere.com", sharedModel},
		{"openrouter", "the OpenRouter API", "openrouter.ai", sharedModel},
		{"huggingface", "models and data sets of Hugging Face", "huggingface.co *.huggingface.co *.hf.co", sharedModels},
		{"github", "GitHub: git over https and ssh, the API, releases and raw files",
			"github.com github.com:22 api.github.com codeload.github.com raw.githubusercontent.com objects.githubusercontent.com release-assets.githubusercontent.com github-cloud.githubusercontent.com tcp://ssh.github.com:443", sharedCode},
		{"gitlab", "gitlab.com: git over https and ssh, and the API", "gitlab.com gitlab.com:22 registry.gitlab.com", sharedCode},
		{"bitbucket", "Bitbucket Cloud: git over https and ssh, and the API", "bitbucket.org bitbucket.org:22 api.bitbucket.org", sharedCode},
		{"codeberg", "Codeberg: git over https and ssh", "codeberg.org codeberg.org:22", sharedCode},
		{"sourcehut", "sourcehut: git over https and ssh", "git.sr.ht git.sr.ht:22", sharedCode},
		{"vscode", "what Visual Studio Code downloads inside over ssh: its server, and extensions",
			"update.code.visualstudio.com vscode.download.prss.microsoft.com marketplace.visualstudio.com *.gallery.vsassets.io *.gallerycdn.vsassets.io", sharedExtensions},
		{"cursor", "what Cursor downloads inside over ssh: its server, and extensions", "downloads.cursor.com marketplace.cursorapi.com", sharedExtensions},
		{"jetbrains", "what JetBrains Gateway downloads inside over ssh: an IDE, and plugins",
			"download.jetbrains.com download-cdn.jetbrains.com plugins.jetbrains.com downloads.marketplace.jetbrains.com", sharedExtensions},
		{"zed", "what Zed downloads inside over ssh: its server, from GitHub's releases; none with upload_binary_over_ssh",
			"zed.dev cloud.zed.dev github.com release-assets.githubusercontent.com objects.githubusercontent.com", sharedCode},
		{"azure-repos", "Azure Repos: git over https and ssh", "dev.azure.com ssh.dev.azure.com:22", sharedCode},
	}
}

// exits returns domains that host many strangers: allowing one of their names
// allows sending data to all of them.
func exits() []string {
	return strings.Fields(`github.com githubusercontent.com github.io gitlab.com gitlab.io bitbucket.org codeberg.org sr.ht
		dev.azure.com huggingface.co hf.co amazonaws.com cloudfront.net googleapis.com googleusercontent.com appspot.com
		run.app firebaseio.com web.app azurewebsites.net windows.net azureedge.net cloudflare.com workers.dev pages.dev
		r2.dev fastly.net akamaihd.net vercel.app netlify.app herokuapp.com fly.dev onrender.com ngrok.io ngrok-free.app
		trycloudflare.com pastebin.com gist.github.com discord.com slack.com telegram.org dropbox.com notion.so
		digitaloceanspaces.com backblazeb2.com supabase.co`)
}

// Warning says that a host, or what a wildcard below it covers, belongs to many
// strangers; empty if nothing is known against it.
func Warning(host string) string {
	host = strings.TrimPrefix(strings.ToLower(strings.TrimSuffix(host, ".")), "*.")
	for _, exit := range exits() {
		if host == exit || strings.HasSuffix(host, "."+exit) {
			return "strangers have accounts at " + exit + ", so data can leave through it"
		}
	}
	return ""
}

// Shared reports whether strangers can have names directly below domain: whether it
// is a public suffix (publicsuffix.org), as com and github.io are, or one of the
// exits. No wildcard should be proposed there. It is here because the list's package
// imports net/http, which the process that carries connections does without.
func Shared(domain string) bool {
	suffix, _ := publicsuffix.PublicSuffix(domain)
	return suffix == domain || Warning(domain) != ""
}
