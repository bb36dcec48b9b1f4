import * as v from 'valibot'
import { settingsSection } from '../../../../kernel/kit/settings.js'
import { Duration } from '../../../../schemas/duration.js'

const DAY_MS = 24 * 60 * 60_000
const offers = settingsSection({ path: 'network.remote.offers', section: 'network', apply: 'live' })
const text = (most: number, meaning: string) => v.pipe(v.string(), v.maxLength(most), v.description(meaning))

export const OfferAgent = offers(
  'agent',
  text(128, 'Agent for tasks offered by other daemons; empty: no offers are accepted'),
  '',
)
export const OfferWorkspace = offers(
  'workspace',
  text(4096, 'Workspace for offered tasks; empty: no offers are accepted'),
  '',
)
export const OfferPeers = offers(
  'peers',
  v.pipe(
    v.array(v.pipe(v.string(), v.maxLength(64))),
    v.maxLength(1000),
    v.description('Peers whose offers are accepted; empty: all peers'),
  ),
  [] as string[],
)
export const OffersAtOnce = offers(
  'at_once',
  v.pipe(
    v.number(),
    v.integer(),
    v.minValue(1),
    v.maxValue(16),
    v.description('Maximum number of offered tasks in progress'),
  ),
  1,
)
export const OfferLease = offers(
  'lease',
  v.pipe(Duration, v.minValue(1000, 'a duration of at least 1s'), v.maxValue(DAY_MS, 'a duration of at most 24h')),
  5 * 60_000,
)
export const offerSettings = [OfferAgent, OfferWorkspace, OfferPeers, OffersAtOnce, OfferLease]
