import { spawnSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ownLines } from '../../cli/setup/owned-file.js'

const bin = fileURLToPath(new URL('../../dist/bin', import.meta.url))

class Person {
  readonly home = mkdtempSync(join(tmpdir(), 'svc-shell-'))
  readonly env = { HOME: this.home, PATH: `${bin}:${process.env.PATH}`, TERM: 'dumb' }

  svc(...args: string[]) {
    return spawnSync(process.execPath, [join(bin, 'svc'), ...args], { encoding: 'utf8', env: this.env })
  }

  write(name: string, text: string): string {
    const path = join(this.home, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    return path
  }

  read(name: string): string {
    return readFileSync(join(this.home, name), 'utf8')
  }

  /** Every file below the home, with what it holds. */
  all(): Record<string, string> {
    const found = readdirSync(this.home, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
    const paths = found.map(entry => join(entry.parentPath, entry.name)).filter(path => !path.includes('zcompdump'))
    return Object.fromEntries(paths.map(path => [path.slice(this.home.length + 1), readFileSync(path, 'utf8')]))
  }
}

const test = suite<{ person: Person }>('files of the user')
test.before.each(context => {
  context.person = new Person()
})
test.after.each(({ person }) => rmSync(person.home, { recursive: true, force: true }))

const has = (program: string) => spawnSync(program, ['--version']).error === undefined

test('bash completes svc after completion install; a repeat changes nothing, and uninstall restores the file', ({
  person,
}) => {
  person.write('.bashrc', 'export MINE=1\nalias ll="ls -l"\n')
  const before = person.all()
  assert.is(person.svc('completion', 'install', 'bash').status, 0)
  const installed = person.all()
  assert.match(person.svc('completion', 'install', 'bash').stdout, 'unchanged')
  assert.equal(person.all(), installed)
  const load =
    'source ~/.bashrc; complete -p svc >/dev/null 2>&1 || source ~/.local/share/bash-completion/completions/svc'
  // biome-ignore lint/suspicious/noTemplateCurlyInString: bash
  const ask = 'COMP_WORDS=(svc daemon st); COMP_CWORD=2; _svc; echo "${COMPREPLY[*]}"; echo "$MINE"'
  const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', `${load}; ${ask}`], {
    encoding: 'utf8',
    env: person.env,
  })
  assert.is(stdout, 'start stop\n1\n', stderr)
  assert.is(person.svc('completion', 'uninstall', 'bash').status, 0)
  assert.equal(person.all(), before)
})

test('zsh completes svc after completion install, and uninstall restores the file', ({ person }) => {
  person.write('.zshrc', 'export MINE=1\n')
  const before = person.all()
  assert.is(person.svc('completion', 'install', 'zsh').status, 0)
  assert.match(person.read('.zshrc'), /^export MINE=1\n# >>> completion of svc >>>\n/)
  if (has('zsh')) {
    // The parts of the completion system are there without a terminal; what would be offered is printed.
    // biome-ignore lint/suspicious/noTemplateCurlyInString: zsh
    const ask = 'compadd() { print -r -- "${@[-1]}" "${@}" }; words=(svc daemon st); CURRENT=3; _svc; print -r -- $MINE'
    const { stdout, stderr } = spawnSync('zsh', ['-i', '-c', ask], { encoding: 'utf8', env: person.env })
    assert.match(stdout, /start[\s\S]*stop[\s\S]*\n1\n/, stderr)
    assert.match(
      spawnSync('zsh', ['-i', '-c', 'print -r -- $_comps[svc]'], { encoding: 'utf8', env: person.env }).stdout,
      '_svc',
    )
  }
  assert.is(person.svc('completion', 'uninstall', 'zsh').status, 0)
  assert.equal(person.all(), before)
})

test('fish completes svc after completion install, and uninstall restores the file', ({ person }) => {
  assert.is(person.svc('completion', 'install', 'fish').status, 0)
  assert.ok(existsSync(join(person.home, '.config/fish/completions/svc.fish')))
  if (has('fish')) {
    const { stdout, stderr } = spawnSync('fish', ['-c', 'complete -C "svc daemon st"'], {
      encoding: 'utf8',
      env: person.env,
    })
    assert.match(stdout, /^start/m, stderr)
    assert.match(stdout, /^stop/m)
  }
  rmSync(join(person.home, '.local'), { recursive: true, force: true })
  assert.is(person.svc('completion', 'uninstall', 'fish').status, 0)
  assert.not.ok(existsSync(join(person.home, '.config/fish/completions/svc.fish')))
})

test('SHELL selects the shell, --print changes nothing, foreign files and symbolic links stay', ({ person }) => {
  const real = person.write('dotfiles/zshrc', '# mine\n')
  symlinkSync(real, join(person.home, '.zshrc'))
  const before = person.all()
  Object.assign(person.env, { SHELL: '/usr/bin/zsh' })
  assert.match(person.svc('completion', 'install', '--print').stdout, 'compdef _svc svc')
  assert.equal(person.all(), before)
  person.svc('completion', 'install')
  assert.ok(lstatSync(join(person.home, '.zshrc')).isSymbolicLink())
  assert.match(readFileSync(real, 'utf8'), '# mine\n# >>> completion of svc >>>')
  const foreign = person.write('.config/fish/completions/svc.fish', 'complete -c svc -a mine\n')
  assert.match(person.svc('completion', 'install', 'fish').stderr, 'file_foreign')
  assert.match(person.svc('completion', 'uninstall', 'fish').stderr, 'file_foreign')
  assert.is(readFileSync(foreign, 'utf8'), 'complete -c svc -a mine\n')
  assert.is(person.svc('completion', 'install', 'tcsh').status, 2)
  assert.match(person.svc('completion', 'zsh').stdout, '#compdef svc')
})

test('the lines of the program are added to and removed from any file without a trace', ({ person }) => {
  for (const text of ['', '\n', 'a', 'a\n', 'a\n\n', '\n\na\n# b']) {
    const path = person.write('rc', text)
    const inside = ownLines(path, 'x', 'source it')
    writeFileSync(path, inside.text ?? '')
    assert.is(ownLines(path, 'x', 'source it').change, 'unchanged')
    const out = ownLines(path, 'x', undefined)
    assert.is(out.text, text === '' || text.endsWith('\n') ? text : `${text}\n`, JSON.stringify(text))
    writeFileSync(path, `${inside.text}more\n`)
    assert.match(ownLines(path, 'x', undefined).text ?? '', /more\n$/)
    assert.match(ownLines(path, 'x', 'source other').text ?? '', /more\n[\s\S]*source other/)
  }
})

test('man finds the pages after man install, without a warning', ({ person }) => {
  assert.is(person.svc('man', 'install').status, 0)
  const folder = join(person.home, '.local/share/man')
  const pages = readdirSync(join(folder, 'man1'))
  assert.ok(pages.includes('svc.1') && pages.includes('svc-session.1'))
  assert.match(person.svc('man', 'install').stdout, `${pages.length} files in all`)
  if (has('mandoc')) {
    const env = {
      ...person.env,
      MANPATH: folder,
      MANPAGER: 'cat',
      PAGER: 'cat',
      MAN_KEEP_FORMATTING: '',
      MANWIDTH: '80',
    }
    const { stdout, stderr } = spawnSync('man', ['--warnings', 'svc-service'], { encoding: 'utf8', env })
    assert.match(stdout, /svc service install/)
    assert.is(stderr, '')
  }
  const lint = spawnSync('mandoc', ['-Tlint', '-W', 'style', ...pages.map(name => join(folder, 'man1', name))], {
    encoding: 'utf8',
  })
  if (!lint.error) assert.is(lint.stdout, '')
  person.write('.local/share/man/man1/svc-mine.1', '.TH MINE 1\n')
  assert.is(person.svc('man', 'uninstall').status, 0)
  assert.equal(readdirSync(join(folder, 'man1')), ['svc-mine.1'])
})

test.run()
