package login

const (
	opencodeFile   = ".local/share/opencode/auth.json"
	opencodeMoved  = "XDG_DATA_HOME"
	opencodeLevels = 2
)

// opencodeLogin is an entry of OpenCode's file. The names in it are the
// providers' of models.dev.
func opencodeLogin(name, title, provider, kind string) Login {
	return Login{
		Name: "opencode-" + name, Client: "opencode", Title: "OpenCode with " + title,
		File: opencodeFile, Moved: opencodeMoved, Levels: opencodeLevels, At: []string{provider}, Is: kind,
	}
}

// opencodeAccounts are the logins with accounts that OpenCode offers. Those of
// GitLab, of Snowflake and of a GitHub Enterprise stay outside: their hosts are
// the user's own, and the first one's token opens all of GitLab.
func opencodeAccounts() []Login {
	chatGPT := opencodeLogin("chatgpt", "a ChatGPT account", "openai", "oauth")
	chatGPT.renewed(&Renewal{Hosts: []string{"auth.openai.com"}, Path: "/oauth/token", Client: "app_EMoamEEZ73f0CkXaXp7hrann"},
		Route{Host: "chatgpt.com", Under: []string{"/backend-api/codex", "/backend-api/wham"}})
	chatGPT.Keep = [][]string{{"expires"}, {"accountId"}}

	superGrok := opencodeLogin("supergrok", "a SuperGrok account", "xai", "oauth")
	superGrok.renewed(&Renewal{Hosts: []string{"auth.x.ai"}, Path: "/oauth2/token", Client: "b1a00492-073a-47ea-816f-4c329264a828"},
		Route{Host: "api.x.ai", Under: []string{"/v1"}})

	// The one token, which does not end, is in both places.
	copilot := opencodeLogin("copilot", "a GitHub Copilot account", "github-copilot", "oauth")
	copilot.Lacks = []string{"enterpriseUrl"}
	copilot.Tokens = []Token{{Role: Access, At: []string{"refresh"}, Also: [][]string{{"access"}}, To: []Route{{Host: "api.githubcopilot.com"}}}}
	copilot.Keep = [][]string{{"expires"}}

	// A key that the account has made; a new one needs a browser.
	poe := opencodeLogin("poe-account", "a Poe account", "poe", "oauth")
	poe.Tokens = []Token{{Role: Access, At: []string{"access"}, Also: [][]string{{"refresh"}}, To: []Route{{Host: "api.poe.com", Under: []string{"/v1"}}}}}
	poe.Keep, poe.Expiry = [][]string{{"expires"}}, []string{"expires"}

	return []Login{chatGPT, superGrok, copilot, poe, opencodeDigitalOcean()}
}

// opencodeDigitalOcean is an account's token or a key, kept as a key.
func opencodeDigitalOcean() Login {
	l := opencodeLogin("digitalocean", "a DigitalOcean account", "digitalocean", "api")
	l.Tokens = []Token{{Role: Access, At: []string{"key"}, Also: [][]string{{"metadata", "oauth_access"}}, To: []Route{
		{Host: "inference.do-ai.run", Under: []string{"/v1"}}, {Host: "api.digitalocean.com", Under: []string{"/v2/gen-ai"}},
	}}}
	for _, name := range []string{"oauth_expires", "oauth_scopes", "routers", "routers_fetched_at"} {
		l.Keep = append(l.Keep, []string{"metadata", name})
	}
	return l
}

// renewed makes it an account whose tokens are renewed with a form.
func (l *Login) renewed(how *Renewal, api Route) {
	how.Keep = []string{"token_type", "expires_in", "scope"}
	l.Tokens = []Token{
		{Role: Access, At: []string{"access"}, Answer: "access_token", To: []Route{api}},
		{Role: Refresh, At: []string{"refresh"}, Answer: "refresh_token", To: []Route{{Host: how.Hosts[0], Under: []string{how.Path}}}},
	}
	l.Keep, l.Expiry, l.Renewal = [][]string{{"expires"}}, []string{"expires"}, how
}

// opencodeKeys are the API keys that OpenCode keeps by provider.
func opencodeKeys() []Login {
	var all []Login
	for _, one := range []struct{ provider, host string }{
		{"anthropic", "api.anthropic.com"}, {"openai", "api.openai.com"}, {"google", "generativelanguage.googleapis.com"},
		{"openrouter", "openrouter.ai"}, {"opencode", "opencode.ai"}, {"opencode-go", "opencode.ai"}, {"groq", "api.groq.com"}, {"xai", "api.x.ai"},
		{"mistral", "api.mistral.ai"}, {"deepseek", "api.deepseek.com"}, {"poe", "api.poe.com"}, {"perplexity", "api.perplexity.ai"},
		{"cerebras", "api.cerebras.ai"}, {"togetherai", "api.together.xyz"}, {"fireworks-ai", "api.fireworks.ai"}, {"cohere", "api.cohere.com"},
		{"moonshotai", "api.moonshot.ai"}, {"kimi-for-coding", "api.kimi.com"}, {"zai", "api.z.ai"}, {"zai-coding-plan", "api.z.ai"},
		{"minimax", "api.minimax.io"}, {"nvidia", "integrate.api.nvidia.com"}, {"huggingface", "router.huggingface.co"}, {"deepinfra", "api.deepinfra.com"},
		{"baseten", "inference.baseten.co"}, {"requesty", "router.requesty.ai"}, {"chutes", "llm.chutes.ai"}, {"alibaba", "dashscope-intl.aliyuncs.com"},
		{"nebius", "api.tokenfactory.nebius.com"}, {"scaleway", "api.scaleway.ai"}, {"upstage", "api.upstage.ai"}, {"vercel", "ai-gateway.vercel.sh"},
	} {
		l := opencodeLogin(one.provider, "a key of "+one.provider, one.provider, "api")
		l.Tokens = []Token{{Role: Access, At: []string{"key"}, To: []Route{{Host: one.host}}}}
		all = append(all, l)
	}
	return all
}
