package landing

import "slices"

// toolRules are the files whose code runs when the project is next installed,
// built, tested, linted or started.
func toolRules() []riskRule {
	return slices.Concat(packageRules(), buildRules(), moreBuildRules(), webRules(), testRules(), lintRules(), containerRules())
}

// packageRules: files that package managers run or obey.
func packageRules() []riskRule {
	return []riskRule{
		{class: Package, tool: "npm", paths: "package.json", look: lookPackageJSON, reason: "scripts and settings of npm and of many tools", calls: "npx yarn pnpm bun bunx node husky lint-staged yorkie"},
		{class: Package, tool: "npm", paths: ".npmrc", reason: "chooses registries, shells and programs of npm"},
		{class: Package, tool: "npm", paths: "binding.gyp *.gypi", reason: "run by npm install, by node-gyp"},
		{class: Package, tool: "pnpm", paths: ".pnpmfile.{cjs,mjs,js} pnpmfile.{cjs,mjs,js} pnpm-workspace.yaml .pnpmrc", reason: "run or obeyed by pnpm install"},
		{class: Package, tool: "Yarn", paths: ".yarnrc .yarnrc.yml .yarn/releases/ .yarn/plugins/ .yarn/sdks/ .yarn/patches/ .yarn/unplugged/ .yarn/cache/ yarn.config.cjs", reason: "run or obeyed by yarn"},
		{class: Package, tool: "Yarn", paths: ".pnp.cjs .pnp.js .pnp.loader.mjs", reason: "run at each start of node by yarn"},
		{class: Package, tool: "Bun and Deno", paths: "bunfig.toml .bunfig.toml deno.json deno.jsonc", reason: "preloaded scripts and tasks"},
		{class: Package, tool: "node", paths: "node_modules/ bower_components/ .bowerrc", reason: "run by node in the place of what npm installs"},
		{class: Package, tool: "pip", paths: "setup.py", reason: "run by pip install", calls: "python python3"},
		{class: Package, tool: "pip", paths: "setup.cfg", reason: "commands and plugins of setuptools and of test tools"},
		{class: Package, tool: "Python tools", paths: "pyproject.toml", look: lookPyproject, reason: "chooses what pip runs to build, and configures tools"},
		{class: Package, tool: "pip and conda", paths: "pip.conf pip.ini .condarc uv.toml poetry.toml .pypirc environment.yml environment.yaml", reason: "chooses where packages come from"},
		{class: Package, tool: "uv, pixi, pdm, hatch and pipenv", paths: "pixi.toml pdm.toml .pdm-python hatch.toml Pipfile", reason: "scripts, tasks and hooks"},
		{class: Package, tool: "cargo", paths: "Cargo.toml", look: lookCargo, reason: "chooses what cargo builds and runs"},
		{class: Package, tool: "cargo", paths: ".cargo/config .cargo/config.toml", reason: "programs that cargo runs: runners, linkers, wrappers, aliases"},
		{class: Package, tool: "rustup", paths: "rust-toolchain rust-toolchain.toml", reason: "chooses the toolchain, by a path too"},
		{class: Package, tool: "Bundler", paths: "Gemfile gems.rb *.gemspec .bundle/ .gemrc", reason: "run by bundle and gem"},
		{class: Package, tool: "gem", paths: "extconf.rb", reason: "run by gem install"},
		{class: Package, tool: "Composer", paths: "composer.json", reason: "scripts and plugins of composer"},
		{class: Package, tool: "NuGet", paths: "nuget.config packages.config .config/dotnet-tools.json dotnet-tools.json", reason: "chooses where packages come from"},
		{class: Package, tool: "CocoaPods and Carthage", paths: "Podfile *.podspec Cartfile", reason: "run by pod install"},
		{class: Package, tool: "Perl", paths: "Makefile.PL Build.PL cpanfile dist.ini", reason: "run by cpan"},
		{class: Package, tool: "LuaRocks", paths: "*.rockspec .luarocks/", reason: "run by luarocks"},
		{class: Package, tool: "Conan and vcpkg", paths: "conanfile.py conanfile.txt portfile.cmake vcpkg.json vcpkg-configuration.json", reason: "run by the package manager"},
		{class: Package, tool: "opam", paths: "*.opam opam", reason: "build commands of opam"},
		{class: Package, tool: "R", paths: "configure.win cleanup.win", reason: "run by R CMD INSTALL"},
		{class: Dependencies, tool: "lock files", paths: "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock Cargo.lock poetry.lock uv.lock pdm.lock pixi.lock Pipfile.lock Gemfile.lock gems.locked composer.lock go.sum mix.lock rebar.lock Podfile.lock packages.lock.json paket.lock gradle.lockfile flake.lock", reason: "chooses what the next install fetches and runs"},
		{class: Dependencies, tool: "requirements", paths: "requirements.txt requirements-*.txt requirements/*.txt requirements.in constraints.txt paket.dependencies shard.yml pubspec.yaml", reason: "chooses what the next install fetches and runs"},
		{class: Dependencies, tool: "Go", paths: "go.mod go.work", reason: "chooses modules and the toolchain"},
		{class: Dependencies, tool: "version managers", paths: ".tool-versions .nvmrc .node-version .python-version .ruby-version .java-version .sdkmanrc .go-version .php-version .terraform-version .swift-version global.json", reason: "chooses which version of a tool runs"},
	}
}

// buildRules: files that build tools run.
func buildRules() []riskRule {
	return []riskRule{
		{class: Build, tool: "make", paths: "Makefile GNUmakefile Makefile.{inc,common,config,include,win} *.mk *.mak BSDmakefile", look: lookMakefile, reason: "run by make"},
		{class: Build, tool: "CMake", paths: "CMakeLists.txt *.cmake CMakePresets.json CMakeUserPresets.json", reason: "run by cmake"},
		{class: Build, tool: "Meson and Ninja", paths: "meson.build meson_options.txt meson.options *.wrap build.ninja", reason: "run by meson or ninja"},
		{class: Build, tool: "Autotools", paths: "configure configure.ac configure.in Makefile.am Makefile.in *.m4 autogen.sh bootstrap bootstrap.sh config.guess config.sub", reason: "run by configure and make"},
		{class: Build, tool: "Bazel", paths: "BUILD BUILD.bazel WORKSPACE WORKSPACE.bazel WORKSPACE.bzlmod MODULE.bazel REPO.bazel *.bzl .bazelrc *.bazelrc .bazeliskrc .bazelversion", reason: "run or obeyed by bazel"},
		{class: Build, tool: "Bazel", paths: "tools/bazel tools/bazel.*", reason: "run instead of bazel"},
		{class: Build, tool: "Buck, Pants and Please", paths: ".buckconfig .buckconfig.local BUCK TARGETS pants.toml pants .plzconfig BUILD.plz", reason: "run or obeyed by the build"},
		{class: Build, tool: "Gradle", paths: "*.gradle *.gradle.kts *.gradle.dcl buildSrc/ build-logic/ gradle.properties gradle/*.toml", reason: "run or obeyed by gradle"},
		{class: Build, tool: "Gradle", paths: "gradlew gradlew.bat gradle/wrapper/ gradle-wrapper.properties gradle-wrapper.jar", reason: "run instead of gradle, or chooses the gradle that is downloaded"},
		{class: Build, tool: "Maven", paths: "pom.xml pom.{yaml,yml,groovy,scala} .mvn/ maven-wrapper.properties", reason: "plugins, extensions and options of maven"},
		{class: Build, tool: "Maven", paths: "mvnw mvnw.cmd", reason: "run instead of maven"},
		{class: Build, tool: "Ant and Ivy", paths: "build.xml ivy.xml ivysettings.xml", reason: "run by ant"},
		{class: Build, tool: "sbt and Mill", paths: "*.sbt project/*.scala project/build.properties .sbtopts .jvmopts build.sc build.mill build.mill.yaml mill .mill-version .mill-jvm-opts", reason: "run or obeyed by the build"},
		{class: Build, tool: "Leiningen, Clojure and Babashka", paths: "project.clj profiles.clj deps.edn build.clj build.boot bb.edn shadow-cljs.edn", reason: "run by the build"},
		{class: Build, tool: "cargo", paths: "build.rs", reason: "run by cargo build"},
		{class: Build, tool: "cargo", paths: "Makefile.toml Cross.toml bacon.toml Trunk.toml dist-workspace.toml", reason: "commands that cargo's helpers run"},
		{class: Build, tool: "Go", paths: "magefile.go magefiles/ .air.toml .goreleaser.y{a,}ml ko.yaml .ko.yaml", reason: "commands that go's helpers run"},
		{class: Build, tool: "Go", paths: "*.go", look: lookGo, reason: "commands in the source"},
		{class: Build, tool: "MSBuild", paths: "Directory.Build.props Directory.Build.targets Directory.Build.rsp Directory.Packages.props Directory.Solution.* *.csproj *.fsproj *.vbproj *.vcxproj *.proj *.props *.targets *.sln *.slnx MSBuild.rsp", reason: "run by dotnet build, some when an editor opens the project"},
		{class: Build, tool: "FAKE, Cake and Nuke", paths: "build.fsx build.cake .nuke/ .nuke *.csx", reason: "run by the build"},
		{class: Build, tool: "Swift", paths: "Package.swift Package@swift-*.swift", reason: "run by swift build, and when an editor opens the project"},
		{class: Build, tool: "Zig and Nim", paths: "build.zig build.zig.zon *.nimble config.nims nim.cfg *.nims", reason: "run by the build"},
		{class: Build, tool: "Haskell", paths: "Setup.hs Setup.lhs *.cabal cabal.project cabal.project.local package.yaml stack.yaml Shakefile.hs", reason: "run or obeyed by the build"},
		{class: Build, tool: "OCaml", paths: "dune dune-project dune-workspace myocamlbuild.ml", reason: "run by dune build"},
		{class: Build, tool: "Elixir and Erlang", paths: "mix.exs config/*.exs rebar.config rebar.config.script", reason: "run by mix or rebar"},
		{class: Build, tool: "Ruby", paths: "Rakefile rakefile.rb *.rake Capfile Thorfile *.thor Guardfile config.ru", reason: "run by rake and others"},
		{class: Build, tool: "Dart and Flutter", paths: "build.yaml melos.yaml hook/build.dart", reason: "run by the build"},
		{class: Build, tool: "PHP", paths: "box.json robo.yml RoboFile.php build.php .user.ini php.ini artisan", reason: "run or obeyed by php"},
		{class: Build, tool: "Fastlane", paths: "Fastfile Appfile Matchfile Pluginfile fastlane/", reason: "run by fastlane"},
	}
}

// moreBuildRules: runners of tasks, and tools around infrastructure.
func moreBuildRules() []riskRule {
	return []riskRule{
		{class: Build, tool: "just", paths: "justfile .justfile *.just", reason: "run by just"},
		{class: Build, tool: "Task", paths: "Taskfile Taskfile.yml Taskfile.yaml Taskfile.dist.yml Taskfile.dist.yaml Taskfile.*.yml .taskrc.yml .taskrc.yaml", reason: "run by task"},
		{class: Build, tool: "SCons, Waf, xmake and Premake", paths: "SConstruct SConscript wscript waf xmake.lua premake4.lua premake5.lua", reason: "run by the build"},
		{class: Build, tool: "Python tasks", paths: "tasks.py fabfile.py dodo.py pavement.py build.py", reason: "run by invoke, fab, doit and others"},
		{class: Build, tool: "Python projects", paths: "manage.py wsgi.py asgi.py gunicorn.conf.py celeryconfig.py", reason: "run by the server or its tool"},
		{class: Build, tool: "Sphinx and MkDocs", paths: "conf.py mkdocs.yml mkdocs.yaml .readthedocs.yml .readthedocs.yaml", reason: "run by the build of the documentation"},
		{class: Build, tool: "Jekyll and Hugo", paths: "_plugins/ _config.yml hugo.toml hugo.yaml config/_default/", reason: "plugins of the site generator"},
		{class: Build, tool: "Snakemake and Nextflow", paths: "Snakefile nextflow.config dvc.yaml", reason: "run by the workflow"},
		{class: Build, tool: "Earthly, Dagger and Tilt", paths: "Earthfile dagger.json Tiltfile skaffold.yaml devspace.yaml garden.yml werf.yaml", reason: "run by the tool"},
		{class: Build, tool: "Terraform", paths: "*.tf *.tf.json *.tofu terragrunt.hcl .terraformrc terraform.rc .terraform/ .terraform.lock.hcl", reason: "providers and programs that a plan runs"},
		{class: Build, tool: "Pulumi, CDK, Serverless and Packer", paths: "Pulumi.yaml Pulumi.*.yaml cdk.json serverless.{yml,yaml,ts,js} samconfig.toml *.pkr.hcl", reason: "run by the tool"},
		{class: Build, tool: "Ansible", paths: "ansible.cfg playbook.yml site.yml roles/*/tasks/ filter_plugins/ callback_plugins/ action_plugins/", reason: "run or obeyed by ansible in the directory"},
		{class: Build, tool: "Nix", paths: "flake.nix shell.nix default.nix devenv.nix devenv.yaml", reason: "run by nix"},
		{class: Build, tool: "Guix, Devbox and Flox", paths: "guix.scm manifest.scm channels.scm devbox.json .flox/", reason: "run when the environment is entered"},
		{class: Build, tool: "process runners", paths: "Procfile Procfile.* .foreman .overmind.env process-compose.yml process-compose.yaml ecosystem.config.{js,cjs} nodemon.json .nodemonrc", reason: "commands that the runner starts"},
		{class: Build, tool: "code generators", paths: "buf.gen.yaml buf.work.yaml buf.yaml sqlc.yaml sqlc.yml gqlgen.yml codegen.{ts,yml,yaml} graphql.config.{js,ts,cjs} .graphqlrc.{js,ts,cjs} openapitools.json", reason: "plugins that the generator runs"},
		{class: Build, tool: "databases", paths: "drizzle.config.{ts,js} prisma.config.ts knexfile.{js,ts,cjs,mjs} ormconfig.{js,ts} alembic.ini alembic/env.py", reason: "run by the migration tool"},
		{class: Build, tool: "release tools", paths: ".releaserc .releaserc.* release.config.* .release-it.* .changeset/config.json .bumpversion.cfg .versionrc.{js,cjs} .czrc .cz.* cliff.toml lerna.json", reason: "commands that a release runs"},
	}
}

// webRules: bundlers, frameworks and runners whose configuration is code.
func webRules() []riskRule {
	return []riskRule{
		{class: Build, tool: "webpack, Rollup and Vite", paths: "webpack.config.* webpack.*.js rollup.config.* vite.config.* rspack.config.* rsbuild.config.* rolldown.config.* esbuild.config.* esbuild.{js,mjs,cjs} tsup.config.* tsdown.config.* unbuild.config.* build.config.* .parcelrc farm.config.* snowpack.config.*", reason: "run by the bundler"},
		{class: Build, tool: "Babel, PostCSS and Tailwind", paths: ".babelrc .babelrc.* babel.config.* postcss.config.* .postcssrc .postcssrc.* tailwind.config.* .browserslistrc .swcrc svgo.config.*", reason: "run or obeyed by each build"},
		{class: Build, tool: "frameworks", paths: "next.config.* nuxt.config.* astro.config.* svelte.config.* remix.config.* react-router.config.* vue.config.* quasar.config.* gatsby-{config,node,browser,ssr}.* angular.json ember-cli-build.js craco.config.* metro.config.* app.config.{js,ts} capacitor.config.* ionic.config.json electron.vite.config.* forge.config.* electron-builder.* qwik.config.* solid.config.* wxt.config.*", reason: "run by the framework's build"},
		{class: Build, tool: "documentation sites", paths: ".storybook/ .vitepress/ .vuepress/ docusaurus.config.* .eleventy.js eleventy.config.* typedoc.{js,cjs,mjs,json} .typedoc.json", reason: "run by the build of the site"},
		{class: Build, tool: "Nx, Turborepo, Rush and moon", paths: "nx.json project.json workspace.json turbo.json rush.json common/config/rush/ .moon/ moon.yml wireit.json", reason: "commands that the runner starts"},
		{class: Build, tool: "Gulp and Grunt", paths: "gulpfile.* gulpfile/ Gruntfile.* Brocfile.js Jakefile Jakefile.js Cakefile", reason: "run by the runner"},
		{class: Build, tool: "Cloudflare, Netlify and Vercel", paths: "wrangler.toml wrangler.json wrangler.jsonc netlify.toml vercel.json firebase.json amplify.yml", reason: "build commands, also of a local run"},
	}
}

// testRules: files that test runners load.
func testRules() []riskRule {
	return []riskRule{
		{class: Test, tool: "Jest", paths: "jest.config.* jest.*.config.* jest.setup.* jest-preset.* jest.preset.* __mocks__/", reason: "run by jest"},
		{class: Test, tool: "Vitest", paths: "vitest.config.* vitest.*.config.* vitest.workspace.* vitest.setup.*", reason: "run by vitest"},
		{class: Test, tool: "Mocha and Jasmine", paths: ".mocharc .mocharc.* .mocha.opts mocha.opts jasmine.json", reason: "chooses what the runner loads"},
		{class: Test, tool: "AVA, tap and nyc", paths: "ava.config.* .taprc tap.config.* .nycrc .nycrc.* nyc.config.* .c8rc.json", reason: "chooses what the runner loads"},
		{class: Test, tool: "Playwright and Cypress", paths: "playwright.config.* playwright-ct.config.* cypress.config.* cypress.json cypress/support/ cypress/plugins/", reason: "run by the runner"},
		{class: Test, tool: "Karma and WebdriverIO", paths: "karma.conf.* wdio.conf.* wdio.*.conf.* nightwatch.conf.* nightwatch.json protractor.conf.* testem.* .testcaferc.* web-test-runner.config.* stryker.conf.* stryker.config.* .detoxrc.* detox.config.*", reason: "run by the runner"},
		{class: Test, tool: "Cucumber", paths: "cucumber.{js,mjs,cjs,json,yml,yaml}", reason: "chooses what the runner loads"},
		{class: Test, tool: "pytest", paths: "conftest.py", reason: "run by pytest"},
		{class: Test, tool: "pytest", paths: "pytest.ini .pytest.ini pytest.toml .pytest.toml", reason: "chooses the plugins and options of pytest"},
		{class: Test, tool: "tox and nox", paths: "tox.ini tox.toml noxfile.py .coveragerc", reason: "run by the runner"},
		{class: Test, tool: "RSpec and Minitest", paths: ".rspec spec_helper.rb rails_helper.rb test_helper.rb .simplecov", reason: "loaded by each run of the tests"},
		{class: Test, tool: "PHPUnit", paths: "phpunit.xml phpunit.xml.dist phpunit.dist.xml behat.yml behat.yml.dist codeception.yml Pest.php phpbench.json infection.json infection.json5", reason: "chooses what the runner loads"},
		{class: Test, tool: "others", paths: ".busted .bats/ nextest.toml .config/nextest.toml behave.ini robot.toml .robocop", reason: "chooses what the runner loads"},
	}
}

// lintRules: linters and formatters whose configuration is code, or loads it.
// Editors run them too.
func lintRules() []riskRule {
	return []riskRule{
		{class: Lint, tool: "ESLint", paths: "eslint.config.* .eslintrc .eslintrc.* .eslintplugin.js eslint-local-rules.* eslint-local-rules/", reason: "run by eslint, in editors too"},
		{class: Lint, tool: "Prettier", paths: ".prettierrc .prettierrc.* prettier.config.*", reason: "run by prettier, in editors too"},
		{class: Lint, tool: "Stylelint", paths: ".stylelintrc .stylelintrc.* stylelint.config.*", reason: "run by stylelint, in editors too"},
		{class: Lint, tool: "TSLint, XO and others", paths: "tslint.json xo.config.* .xo-config.* .dependency-cruiser.* .jscs* .solhint.json knip.{js,ts} knip.config.* .size-limit.{js,cjs} .ncurc.*", reason: "loads code"},
		{class: Lint, tool: "Markdown and text", paths: ".markdownlint-cli2.* .markdownlint.{js,cjs,mjs} .remarkrc .remarkrc.* .textlintrc .textlintrc.* .secretlintrc.* .alexrc.js cspell.config.{js,cjs,mjs} cspell.{js,cjs,mjs} .vale.ini", reason: "loads code"},
		{class: Lint, tool: "Pylint", paths: ".pylintrc pylintrc pylintrc.toml .pylintrc.toml", reason: "init-hook runs code in pylint, in editors too"},
		{class: Lint, tool: "Flake8, mypy and others", paths: ".flake8 mypy.ini .mypy.ini .prospector.yaml .sqlfluff .bandit pyrightconfig.json", reason: "plugins that the linter loads"},
		{class: Lint, tool: "RuboCop", paths: ".rubocop.yml .rubocop/ .rubocop_*.yml .standard.yml .erb_lint.yml .haml-lint.yml .slim-lint.yml .reek.yml", reason: "requires files of ruby, in editors too"},
		{class: Lint, tool: "PHP", paths: ".php-cs-fixer.php .php-cs-fixer.dist.php .php_cs phpstan.neon phpstan.neon.dist phpstan.dist.neon psalm.xml psalm.xml.dist rector.php ecs.php pint.json phpcs.xml phpcs.xml.dist .phpcs.xml deptrac.yaml", reason: "run or obeyed by the linter"},
		{class: Lint, tool: "Go", paths: ".golangci.yml .golangci.yaml .golangci.toml .golangci.json .custom-gcl.yml .custom-gcl.yaml", reason: "plugins that the linter loads"},
		{class: Lint, tool: "Elixir", paths: ".credo.exs .formatter.exs .dialyzer_ignore.exs", reason: "run by mix, in editors too"},
		{class: Lint, tool: "Lua and R", paths: ".luacheckrc .lintr", reason: "run by the linter, in editors too"},
		{class: Lint, tool: "JVM languages", paths: ".scalafix.conf .scalafmt.conf checkstyle.xml detekt.yml spotbugs.xml", reason: "chooses the rules and versions that the linter loads"},
		{class: Lint, tool: "Swift", paths: ".swiftlint.yml .swift-format", reason: "obeyed by the linter"},
		{class: Lint, tool: "runners of linters", paths: ".trunk/ .mega-linter.yml .megalinter.yml .qlty/ .github/super-linter.env Dangerfile dangerfile.* .arclint .reviewdog.yml .treefmt.toml treefmt.toml", reason: "programs that the runner starts"},
	}
}

// containerRules: files that engines of containers and machines run or mount.
func containerRules() []riskRule {
	return []riskRule{
		{class: Container, tool: "Docker and Podman", paths: "Dockerfile Dockerfile.* *.Dockerfile Containerfile Containerfile.* docker-bake.*", reason: "run by the build of an image"},
		{class: Container, tool: "Compose", paths: "compose.y{a,}ml compose.*.y{a,}ml docker-compose.y{a,}ml docker-compose.*.y{a,}ml docker-compose-*.y{a,}ml podman-compose.y{a,}ml", reason: "started by compose, with any mount of this machine"},
		{class: Container, tool: "Kubernetes", paths: "kustomization.y{a,}ml Chart.yaml helmfile.y{a,}ml helmfile.d/", reason: "plugins and post-renderers that the tool runs"},
		{class: Container, tool: "Vagrant and Lima", paths: "Vagrantfile Vagrantfile.* .vagrant/ lima.yaml *.lima.yaml .lima-sandbox.toml", reason: "run by the tool, with mounts of this machine"},
		{class: Container, tool: "buildpacks", paths: "project.toml nixpacks.toml fly.toml app.yaml .s2i/ .buildpacks", reason: "run by the build of an image"},
	}
}

// elsewhereRules are the files that run on other machines, with their access:
// secrets, tokens, deployments.
func elsewhereRules() []riskRule {
	return []riskRule{
		{class: CI, tool: "GitHub", paths: ".github/workflows/ .github/actions/ action.yml action.yaml .github/dependabot.yml", reason: "run or obeyed by GitHub, with the repository's secrets"},
		{class: CI, tool: "GitLab", paths: ".gitlab-ci.yml *.gitlab-ci.yml .gitlab/", reason: "run by GitLab with the repository's secrets"},
		{class: CI, tool: "Gitea and Forgejo", paths: ".gitea/ .forgejo/", reason: "run by the forge with the repository's secrets"},
		{class: CI, tool: "Bitbucket", paths: "bitbucket-pipelines.yml", reason: "run by Bitbucket with the repository's secrets"},
		{class: CI, tool: "SourceHut, Radicle and OneDev", paths: ".build.yml .builds/ .radicle/ .onedev-buildspec.yml", reason: "run by the forge with the repository's secrets"},
		{class: CI, tool: "Azure Pipelines", paths: "azure-pipelines.yml azure-pipelines.yaml azure-pipelines-*.yml .azure-pipelines/ .azuredevops/ .vsts-ci.yml", reason: "run by Azure with the repository's secrets"},
		{class: CI, tool: "CircleCI and Travis CI", paths: ".circleci/ circle.yml .travis.yml .travis/", reason: "run by the service with the repository's secrets"},
		{class: CI, tool: "Jenkins and TeamCity", paths: "Jenkinsfile Jenkinsfile.* *.jenkinsfile .teamcity/", reason: "run by the server with its credentials"},
		{class: CI, tool: "Drone and Woodpecker", paths: ".drone.yml .drone.star .drone.jsonnet .woodpecker/ .woodpecker.yml .woodpecker.yaml .crow/ .vela.yml", reason: "run by the server with its secrets"},
		{class: CI, tool: "Buildkite and Semaphore", paths: ".buildkite/ buildkite.yml .semaphore/", reason: "run by agents with their secrets"},
		{class: CI, tool: "AppVeyor, Cirrus and Codefresh", paths: "appveyor.yml .appveyor.yml .cirrus.yml .cirrus.star codefresh.yml .codefresh/", reason: "run by the service with its secrets"},
		{class: CI, tool: "Codemagic, Bitrise and Xcode Cloud", paths: "codemagic.yaml bitrise.yml ci_scripts/", reason: "run by the service with its secrets"},
		{class: CI, tool: "AWS, Google and others", paths: "buildspec.yml buildspec.yaml buildspec-*.yml appspec.yml cloudbuild.yaml cloudbuild.yml .tekton/ .prow.yaml .zuul.yaml zuul.yaml .zuul.d/ zuul.d/ .harness/ *.gocd.yaml screwdriver.yaml wercker.yml .scrutinizer.yml .space.kts .agola/", reason: "run by the service with its credentials"},
		{class: CI, tool: "Renovate and Mergify", paths: "renovate.json renovate.json5 .renovaterc .renovaterc.json .mergify.yml .github/renovate.json", reason: "obeyed by a bot that changes the repository"},
		{class: CI, tool: "Render and Heroku", paths: "render.yaml app.json heroku.yml", reason: "commands of the deployment"},
	}
}
