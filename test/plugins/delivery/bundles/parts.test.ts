import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { withCallerScope } from '../../../../plugins/delivery/bundles/api.js'
import { derivedId, ID_PREFIXES } from '../../../../plugins/delivery/bundles/ids.js'
import { parseBundle } from '../../../../plugins/delivery/bundles/manifest.js'
import { requirementDigest } from '../../../../plugins/delivery/extensions/api.js'
import { job, profile, trigger } from './kit.js'

const ACTIVATION = 'act_c159f9064f396f4b'

/** Made with another program: hashlib of Python. */
const DERIVED: readonly (readonly [keyof typeof ID_PREFIXES, readonly string[], string])[] = [
  ['bundle', ['demo-kit', 'release-kit'], 'bun_8eaa749db73907ee'],
  ['activation', ['demo-kit', 'release-kit', 'default', 'global', ''], ACTIVATION],
  ['activation', ['demo-kit', 'release-kit', 'default', 'workspace', 'ws_0011223344556677'], 'act_23844710ae2f0359'],
  ['agent', [ACTIVATION, 'planner'], 'agt_c7f35aad7ed40459'],
  ['agent.soul', [ACTIVATION, 'planner'], 'sol_c7f35aad7ed40459'],
  ['agent.heartbeat', [ACTIVATION, 'planner'], 'hbt_c7f35aad7ed40459'],
  ['automation.job', [ACTIVATION, 'nightly'], 'job_636b6d9ce1d13c3d'],
  ['automation.trigger', [ACTIVATION, ' on-stop '], 'trg_50ecd5ecc6d46602'],
  ['window_layout', [ACTIVATION, 'two-up'], 'lay_33d198fe09c641fa'],
  ['bridge.instance', [ACTIVATION, 'Größe'], 'bri_bb633b7873e113a4'],
]

for (const [what, parts, id] of DERIVED)
  test(`derived ids (3.6): ${what} of ${parts} is ${id}`, () => assert.is(derivedId(what, ...parts), id))

test('derived ids (3.6) are tested for every prefix', () => {
  assert.equal(new Set(DERIVED.map(([what]) => what)), new Set(Object.keys(ID_PREFIXES)))
})

test('the requirement digest (3.7) equals that of another program, for any order and repetition of scopes', () => {
  const digest = (...channel_scopes: string[]) =>
    requirementDigest({ network_participation: { required: true, channel_scopes } })
  const none = '7855adf19e85d2644ba3b872ad02e67d87f2f24f4b1323835f93cfa3a869bb45'
  assert.is(digest(), none)
  assert.is(requirementDigest({ network_participation: { required: true } }), none)
  assert.is(digest('builders'), '24e0db59f5a55d6dccc494a8b3070c795ac184d8d508885b9146308fe4b1b650')
  assert.is(digest('b', 'a', 'b'), 'cddff9493b630309f88d59d81183e6b3e1866e5f350217dfc437ef4d9f21817b')
  assert.is(requirementDigest({ network_participation: { required: false } }), '')
  assert.is(requirementDigest({}), '')
})

const problems = (file: string, text: string) => {
  const parsed = parseBundle(file, text)
  return 'length' in parsed ? parsed : []
}

/** What is wrong with a bundle of this one profile, as `key: message`. */
const wrong = (more: Record<string, unknown>, bundle: Record<string, unknown> = {}) => {
  const text = JSON.stringify({ name: 'kit', profiles: [profile(more)], ...bundle })
  return problems('b.json', text).map(({ key, message }) => `${key}: ${message}`)
}

const INVALID: readonly (readonly [string, Record<string, unknown>, Record<string, unknown>, RegExp])[] = [
  ['a bundle has a name', {}, { name: '' }, /^name: /],
  ['a bundle has a profile', {}, { profiles: [] }, /^profiles: at least one profile/],
  ['a profile has a name', { name: ' ' }, {}, /^profiles\.0\.name: /],
  [
    'profile names are unique without case',
    {},
    { profiles: [profile(), profile({ name: 'Default' })] },
    /^profiles\.1\.name: another profile/,
  ],
  [
    'channel names are unique',
    { channels: { primary: 'a', items: [{ name: 'a' }, { name: 'A' }] } },
    {},
    /^profiles\.0\.channels\.items\.1\.name: another channel/,
  ],
  [
    'a primary agent is required',
    { channels: { items: [{ name: 'a' }] } },
    {},
    /^profiles\.0\.channels\.primary: required/,
  ],
  [
    'the primary agent is declared',
    { channels: { primary: 'b', items: [{ name: 'a' }] } },
    {},
    /^profiles\.0\.channels\.primary: it is not a channel/,
  ],
  ['an agent has a path', { agents: [{}] }, {}, /^profiles\.0\.agents\.0\.path: /],
  ['a path stays inside the extension', { agents: [{ path: '../x' }] }, {}, /^profiles\.0\.agents\.0\.path: /],
  ['a path is relative', { layouts: [{ path: '/etc/passwd' }] }, {}, /^profiles\.0\.layouts\.0\.path: /],
  ['a layout has a path', { layouts: [{ id: 'x' }] }, {}, /^profiles\.0\.layouts\.0\.path: /],
  ['job names are unique', { jobs: [job('a'), job('A')] }, {}, /^profiles\.0\.jobs\.1\.name: another job/],
  [
    'trigger names are unique',
    { triggers: [trigger('a'), trigger('a')] },
    {},
    /^profiles\.0\.triggers\.1\.name: another trigger/,
  ],
  ['a trigger has an event', { triggers: [trigger('a', { event: 1 })] }, {}, /^profiles\.0\.triggers\.0\.event: /],
  [
    'bridge names are unique',
    { bridges: ['a', 'a'].map(name => ({ name, display_name: 'x', platform: 'slack', routing_policy: {} })) },
    {},
    /^profiles\.0\.bridges\.1\.name: another bridge/,
  ],
  [
    'a bridge has a display name',
    { bridges: [{ name: 'a', routing_policy: {} }] },
    {},
    /^profiles\.0\.bridges\.0\.display_name: /,
  ],
  [
    'a bridge has a routing policy',
    { bridges: [{ name: 'a', display_name: 'x' }] },
    {},
    /^profiles\.0\.bridges\.0\.routing_policy: /,
  ],
  [
    'a job with a channel names a declared one',
    {
      jobs: [
        job('a', {
          task: { network_participation: { mode: 'live', channel_strategy: 'named', channel_id: 'nowhere' } },
        }),
      ],
    },
    {},
    /^profiles\.0\.jobs\.0\.task\.network_participation\.channel_id: it is not a channel/,
  ],
  ['an unknown member is reported', { agnets: [] }, {}, /^profiles\.0\.agnets: unknown member/],
  [
    'an agent is declared once',
    { jobs: [job('a', { agent_name: 'other' })] },
    {},
    /^profiles\.0\.jobs\.0\.agent: set agent or agent_name/,
  ],
]

for (const [says, more, bundle, expected] of INVALID)
  test(`bundle manifest (3.5) is checked: ${says}`, () => {
    const found = wrong(more, bundle)
    assert.ok(
      found.some(line => expected.test(line)),
      `${found.join('\n')} is not ${expected}`,
    )
  })

test('bundle manifest (3.5): all problems are reported by key; fields may stand below [bundle], but not in both places', () => {
  assert.is(wrong({}).length, 0)
  assert.is(wrong({ jobs: [job('a'), job('a')], channels: { items: [{ name: 'x' }] } }).length, 2)
  const below = parseBundle('b.toml', '[bundle]\nname = "kit"\n[[bundle.profiles]]\nname = "p"\n')
  assert.not('length' in below)
  const root = parseBundle('b.toml', '[bundle]\nname = "kit"\n[[profiles]]\nname = "p"\n')
  assert.not('length' in root)
  const both = parseBundle('b.toml', 'name = "kit"\n[[profiles]]\nname = "p"\n[[bundle.profiles]]\nname = "q"\n')
  assert.equal(both, [
    { file: 'b.toml', line: 4, key: 'bundle.profiles', message: 'it also occurs at the root; set it once' },
  ])
  const [syntax] = problems('b.toml', 'name = "kit"\nprofiles = [\n')
  assert.match(syntax?.message ?? '', /not valid TOML/)
  assert.ok(syntax?.line)
  const deep = problems('b.toml', '[bundle]\nname = "kit"\n[[bundle.profiles]]\n')
  assert.is(deep[0]?.key, 'bundle.profiles.0.name')
})

test('Native tool default: a caller in a workspace means that workspace, unless it asks for none', () => {
  const request = { extension_name: 'e', bundle_name: 'b', profile_name: 'p' }
  assert.equal(withCallerScope(request, 'ws_1'), { ...request, scope: 'workspace', workspace: 'ws_1' })
  assert.equal(withCallerScope({ ...request, workspace: 'two' }, 'ws_1').workspace, 'two')
  assert.equal(withCallerScope({ ...request, scope: 'global' }, 'ws_1'), { ...request, scope: 'global' })
  assert.equal(withCallerScope(request, undefined), request)
})

test.run()
