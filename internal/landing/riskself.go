package landing

import "slices"

// selfRules are the files that run, or make programs run, as soon as git is
// used or the directory is opened in a shell, an editor or an agent.
func selfRules() []riskRule {
	return slices.Concat(gitRules(), shellRules(), editorRules(), agentRules())
}

// gitRules: githooks(5), gitattributes(5), gitmodules(5), and the
// documentation of the programs that manage hooks.
func gitRules() []riskRule {
	return []riskRule{
		{class: Git, tool: "git", paths: ".gitattributes", reason: "chooses the filters and merge drivers that git runs"},
		{class: Git, tool: "git", paths: ".gitmodules", reason: "tells git what to fetch, and from where"},
		{class: Git, tool: "git", paths: ".gitconfig .config/git/", reason: "git configuration, where it is included or linked into HOME"},
		{class: Git, tool: "Git LFS", paths: ".lfsconfig", reason: "chooses the server and the programs of Git LFS"},
		{class: Git, tool: "git hooks", paths: ".githooks/ .git-hooks/ .git_hooks/ git_hooks/ git-hooks/ githooks/ .hooks/", reason: "run by git commands, where core.hooksPath leads here", hooks: true},
		{class: Git, tool: "husky", paths: ".husky/ .huskyrc .huskyrc.* husky.config.{js,cjs,mjs,ts} .husky.json", reason: "run by git commands", hooks: true},
		{class: Git, tool: "lefthook", paths: "{lefthook,.lefthook,lefthook-local,.lefthook-local}.{yml,yaml,toml,json,jsonc} .config/{lefthook,lefthook-local}.{yml,yaml,toml,json,jsonc} .lefthook/ .lefthook-local/", reason: "run by git commands", hooks: true},
		{class: Git, tool: "pre-commit", paths: ".pre-commit-config.{yaml,yml} .pre-commit-hooks.{yaml,yml} prek.toml", reason: "run by git commit", hooks: true},
		{class: Git, tool: "overcommit", paths: ".overcommit.yml .overcommit/ .local-overcommit.yml", reason: "run by git commands", hooks: true},
		{class: Git, tool: "simple-git-hooks", paths: "{simple-git-hooks,.simple-git-hooks}.{js,cjs,mjs,ts,json}", reason: "run by git commands", hooks: true},
		{class: Git, tool: "lint-staged", paths: ".lintstagedrc .lintstagedrc.{json,yaml,yml,js,cjs,mjs,ts} lint-staged.config.{js,cjs,mjs,ts,mts,cts} {nano-staged,.nano-staged}.{js,cjs,mjs,json}", reason: "names the commands that a git hook runs", hooks: true},
		{class: Git, tool: "CaptainHook and GrumPHP", paths: "captainhook.json captainhook.config.json {grumphp,.grumphp}.{yml,yaml} grumphp.{yml,yaml}.dist grumphp.dist.{yml,yaml}", reason: "run by git commands", hooks: true},
		{class: Git, tool: "rusty-hook, cargo-husky and hk", paths: "{rusty-hook,.rusty-hook}.toml .cargo-husky/ hk.pkl hk.local.pkl .config/hk.pkl", reason: "run by git commands", hooks: true},
		{class: Git, tool: "commitlint", paths: ".commitlintrc .commitlintrc.* commitlint.config.*", reason: "run by the hook commit-msg", hooks: true},
		{class: Git, tool: "other version control", paths: ".hg/ .hgrc .jj/ .svn/ .bzr/", reason: "a repository with configuration and hooks of its own, which prompts and editors ask too"},
		{class: Git, tool: "litterbox", paths: ".litterbox.toml", reason: "configuration of litterbox itself"},
	}
}

// shellRules: files that shells, prompts, interpreters and debuggers read where
// they are started.
func shellRules() []riskRule {
	return []riskRule{
		{class: Shell, tool: "direnv", paths: ".envrc", reason: "run by direnv when the shell enters the directory"},
		{class: Shell, tool: "dotenv", paths: ".env .env.local .env.*.local .env.{development,production,test,staging,dev,prod} .flaskenv", reason: "sets the environment of tools and shells"},
		{class: Shell, tool: "autoenv and smartcd", paths: ".autoenv .autoenv.zsh .autoenv_leave.zsh .env.leave .in .out .bash_enter .bash_leave .bash_smartcd", reason: "run when the shell enters the directory"},
		{class: Shell, tool: "mise", paths: "mise.toml mise.*.toml .mise.toml .mise.*.toml mise/config.toml .mise/ .config/mise.toml .config/mise/ .rtx.toml", reason: "sets variables and runs hooks when the shell enters the directory"},
		{class: Shell, tool: "shells", paths: ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .inputrc .config/fish/ .config/nushell/ .tmux.conf .screenrc .xinitrc .xprofile .xsessionrc", reason: "run by each shell, where it is linked into HOME"},
		{class: Run, tool: "Python", paths: "sitecustomize.py usercustomize.py *.pth pyvenv.cfg", reason: "run or read at each start of python that finds it"},
		{class: Run, tool: "Python", paths: "__pycache__/ *.pyc", reason: "compiled code that python may run instead of the source"},
		{class: Run, tool: "Python", paths: ".pdbrc", reason: "run by the debugger of python"},
		{class: Run, tool: "IPython and Jupyter", paths: "ipython_config.py jupyter_*config.py .jupyter/ .ipython/", reason: "run at the start of IPython or Jupyter"},
		{class: Run, tool: "R", paths: ".Rprofile Rprofile.site .Renviron renv/activate.R", reason: "run at each start of R in the directory"},
		{class: Run, tool: "Ruby", paths: ".irbrc .pryrc .byebugrc .rdbgrc .rdbgrc.rb", reason: "run at the start of irb, pry or the debugger"},
		{class: Run, tool: "gdb and lldb", paths: ".gdbinit *-gdb.py *-gdb.gdb .lldbinit", reason: "run at the start of the debugger"},
		{class: Run, tool: "GHCi", paths: ".ghci", reason: "run at the start of GHCi"},
		{class: Run, tool: "Elixir and Erlang", paths: ".iex.exs .erlang", reason: "run at the start of the shell"},
		{class: Run, tool: "OCaml", paths: ".ocamlinit", reason: "run at the start of the toplevel"},
		{class: Run, tool: "Octave and MATLAB", paths: ".octaverc startup.m", reason: "run at the start in the directory"},
	}
}

// editorRules: files that editors run or obey when a folder or a file in it is
// opened, some after a question of their own.
func editorRules() []riskRule {
	return []riskRule{
		{class: Editor, tool: "VS Code", paths: ".vscode/ *.code-workspace", reason: "tasks, launch configurations and settings that name programs"},
		{class: Editor, tool: "Dev Containers", paths: ".devcontainer/ .devcontainer.json devcontainer.json", reason: "commands that run when the editor opens the project, some on this machine"},
		{class: Editor, tool: "JetBrains", paths: ".idea/ .run/ .fleet/ *.iml *.ipr *.iws", reason: "run configurations and start-up tasks"},
		{class: Editor, tool: "Zed", paths: ".zed/", reason: "tasks and settings that name programs"},
		{class: Editor, tool: "Vim", paths: ".vimrc _vimrc .exrc _exrc .gvimrc .lvimrc .local.vimrc .vim/", reason: "run by vim where exrc or a plugin reads it"},
		{class: Editor, tool: "Neovim", paths: ".nvim.lua .nvimrc .nvim/ .lazy.lua .neoconf.json neoconf.json", reason: "run by neovim where exrc or a plugin reads it"},
		{class: Editor, tool: "Emacs", paths: ".dir-locals.el .dir-locals-2.el .emacs .emacs.d/", reason: "variables and code that emacs evaluates when a file is opened"},
		{class: Editor, tool: "Helix and Kakoune", paths: ".helix/ .kakrc .kak/", reason: "settings that name programs"},
		{class: Editor, tool: "Sublime Text", paths: "*.sublime-project *.sublime-build *.sublime-settings", reason: "build systems and settings that name programs"},
		{class: Editor, tool: "Visual Studio", paths: ".vs/ launchSettings.json", reason: "start-up of the project"},
		{class: Editor, tool: "Xcode", paths: "*.xcodeproj/ *.xcworkspace/ *.xcscheme *.xcconfig", reason: "build phases and schemes, which run scripts"},
		{class: Editor, tool: "Eclipse and NetBeans", paths: ".project .externalToolBuilders/ .settings/ *.launch nbproject/", reason: "builders and launch configurations"},
		{class: Editor, tool: "Nova and TextMate", paths: ".nova/ .tm_properties", reason: "tasks and settings that name programs"},
		{class: Editor, tool: "RStudio", paths: "*.Rproj", reason: "what RStudio runs for the project"},
		{class: Editor, tool: "language servers", paths: ".luarc.json .luarc.jsonc rust-analyzer.toml .rust-analyzer.toml hie.yaml .clangd compile_commands.json .solargraph.yml .sorbet/ sorbet/config .lsp.json", reason: "names plugins or programs that a language server runs"},
		{class: Editor, tool: "TypeScript", paths: "tsconfig.json tsconfig.*.json jsconfig.json", look: lookPlugins, reason: "names plugins that the editor's language server loads"},
		{class: Editor, tool: "cloud editors", paths: ".gitpod.yml .gitpod.Dockerfile .ona/ devfile.yaml .devfile.yaml .replit replit.nix .idx/ .stackblitzrc", reason: "commands that run when the project is opened"},
	}
}

// agentRules: configuration that gives agents programs, hooks or permissions,
// and texts that they take as instructions.
func agentRules() []riskRule {
	return []riskRule{
		{class: Agent, tool: "MCP clients", paths: ".mcp.json mcp.json .mcp/", reason: "programs that an agent starts"},
		{class: Agent, tool: "Claude Code", paths: ".claude/ .claude.json .claude-plugin/", reason: "hooks, commands and permissions of an agent"},
		{class: Agent, tool: "Codex", paths: ".codex/", reason: "programs and permissions of an agent"},
		{class: Agent, tool: "Gemini CLI", paths: ".gemini/ gemini-extension.json", reason: "programs and permissions of an agent"},
		{class: Agent, tool: "Cursor", paths: ".cursor/", reason: "programs, hooks and rules of an agent"},
		{class: Agent, tool: "OpenCode", paths: "opencode.json opencode.jsonc .opencode/ .opencode.json", reason: "programs, plugins and permissions of an agent"},
		{class: Agent, tool: "Goose", paths: ".goose/ .gooseignore", reason: "programs and permissions of an agent"},
		{class: Agent, tool: "GitHub Copilot", paths: ".github/hooks/ .github/agents/ .github/skills/ .github/copilot/ .copilot/", reason: "hooks, agents and skills of an agent"},
		{class: Agent, tool: "Kiro and Amazon Q", paths: ".kiro/ .amazonq/", reason: "hooks, programs and rules of an agent"},
		{class: Agent, tool: "Roo, Cline and Kilo Code", paths: ".roo/ .roomodes .cline/ .clinerules/ .kilocode/ .kilocodemodes .kilo/", reason: "programs, modes and rules of an agent"},
		{class: Agent, tool: "Windsurf, Continue and Trae", paths: ".windsurf/ .continue/ .continuerc.json .trae/ .codeium/", reason: "programs and rules of an agent"},
		{class: Agent, tool: "Aider", paths: ".aider.conf.yml .aider.conf.yaml .aider.model.settings.yml", reason: "options of an agent, commands it runs among them"},
		{class: Agent, tool: "Qwen Code and Crush", paths: ".qwen/ crush.json .crush.json .crush/", reason: "programs and permissions of an agent"},
		{class: Agent, tool: "other agents", paths: ".agents/ .agent/ .ai/ .amp/ .augment/ .factory/ .openhands/ .junie/ .warp/ .devin/ .rovodev/ .tabnine/ .cody/ .sourcegraph/ .vibe/ .pi/ .ruler/ .bolt/ .zencoder/ .void/ .letta/", reason: "programs, skills or rules of an agent"},
		{class: Instructions, tool: "several agents", paths: "AGENTS.md AGENTS.override.md AGENTS.local.md AGENT.md SKILL.md CONVENTIONS.md .rules", reason: "instructions to agents"},
		{class: Instructions, tool: "Claude Code", paths: "CLAUDE.md CLAUDE.local.md", reason: "instructions to an agent"},
		{class: Instructions, tool: "Gemini CLI and Qwen Code", paths: "GEMINI.md QWEN.md", reason: "instructions to an agent"},
		{class: Instructions, tool: "GitHub Copilot", paths: "copilot-instructions.md .github/instructions/ .github/prompts/ .github/chatmodes/ *.instructions.md *.prompt.md *.chatmode.md", reason: "instructions to an agent"},
		{class: Instructions, tool: "Cursor, Windsurf, Cline, Roo", paths: ".cursorrules .windsurfrules .clinerules .roorules .roorules-* .kilocoderules .continuerules .traerules", reason: "instructions to an agent"},
		{class: Instructions, tool: "Goose and Augment", paths: ".goosehints .augment-guidelines .openhands_instructions", reason: "instructions to an agent"},
		{class: Instructions, tool: "other agents", paths: "CRUSH.md WARP.md JULES.md JUNIE.md replit.md .airules airules.md", reason: "instructions to an agent"},
	}
}
