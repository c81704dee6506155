/** The demo's documents: a small company writing about what it builds. One review is in progress. */
export interface DemoDocument {
  /** Stays the same over versions of the demo. */
  readonly slug: string
  readonly owner: string
  readonly contributors?: readonly string[]
  readonly approvers?: readonly string[]
  /** Approvers who have approved. */
  readonly approved?: readonly string[]
  readonly published: boolean
  readonly obsolete?: boolean
  readonly fields: {
    readonly title: string
    readonly docType: string
    readonly product: string
    readonly summary: string
    readonly content: string
    readonly tags: readonly string[]
  }
}

export const demoDocuments: readonly DemoDocument[] = [
  {
    slug: 'outbox',
    owner: 'alan',
    published: true,
    approvers: ['grace', 'edsger'],
    approved: ['grace', 'edsger'],
    fields: {
      title: 'Events that share the fate of their rows',
      docType: 'RFC',
      product: 'Platform',
      tags: ['outbox', 'postgresql', 'architecture'],
      summary: 'Write the change and the event that tells of it in one transaction, or neither.',
      content:
        'Two writes to two systems cannot be one. We keep the event in the database beside the rows it is about; a worker numbers what was committed and carries it to search, mail and webhooks, in order, at least once. A rollback takes its events with it. Nothing is lost when a worker dies, because the log is the database.',
    },
  },
  {
    slug: 'breath',
    owner: 'edsger',
    published: true,
    contributors: ['alan'],
    approvers: ['alan', 'grace'],
    approved: ['grace'],
    fields: {
      title: 'Searchable within a breath of the commit',
      docType: 'RFC',
      product: 'Search',
      tags: ['search', 'latency'],
      summary: 'A saved document is found by the next search: a quarter of a second at the most.',
      content:
        'People save, search, and do not find what they just wrote. Then they save again. The budget from commit to searchable is 250 milliseconds at the 99th percentile, while two hundred people write. This proposal names where the time goes: numbering, claiming, the bulk call, the refresh.',
    },
  },
  {
    slug: 'refunds',
    owner: 'alan',
    published: true,
    approvers: ['edsger', 'ada'],
    fields: {
      title: 'Refunds without tickets',
      docType: 'PRD',
      product: 'Billing',
      tags: ['refunds', 'customers'],
      summary: 'Customers take a payment back by themselves within fourteen days.',
      content:
        'Four of ten tickets ask for a refund that we always grant. The form shows what comes back and when, writes the booking, and sends a receipt. Above 500 euros somebody has a look first.',
    },
  },
  {
    slug: 'offline',
    owner: 'edsger',
    published: true,
    approvers: ['alan'],
    approved: ['alan'],
    fields: {
      title: 'Offline reading on the train',
      docType: 'PRD',
      product: 'Mobile',
      tags: ['offline', 'reading'],
      summary: 'The last hundred documents stay readable in every tunnel.',
      content:
        'The app keeps what you opened lately and what your team changed today. Changes made offline wait in an outbox on the phone and are sent in order when the network is back; a conflict shows both versions side by side.',
    },
  },
  {
    slug: 'accents',
    owner: 'grace',
    published: true,
    approvers: ['edsger'],
    approved: ['edsger'],
    fields: {
      title: 'Café, Zürich, naïve: accents in search',
      docType: 'FRD',
      product: 'Search',
      tags: ['search', 'languages'],
      summary: 'Type cafe and find Café; type it wrong and still find it.',
      content:
        'Words are folded before they are compared: case and accents do not matter, prefixes match while you type, and when little is found, similar words are tried. Names such as Åsa, François and Łukasz are the test.',
    },
  },
  {
    slug: 'incident',
    owner: 'grace',
    published: true,
    contributors: ['edsger'],
    approvers: ['alan'],
    approved: ['alan'],
    fields: {
      title: 'The morning the index lied',
      docType: 'Report',
      product: 'Platform',
      tags: ['incident', 'search', 'outbox'],
      summary: 'For 43 minutes search showed prices that the database no longer had.',
      content:
        'At 08:12 the index was restored from a backup of the night. Writers kept writing, the index kept answering, and nobody compared the two. Since then every document in the index carries the position of the event that wrote it, and an older one can never replace a newer one.',
    },
  },
  {
    slug: 'passkeys',
    owner: 'alan',
    published: true,
    approvers: ['ada', 'grace'],
    fields: {
      title: 'Passkeys for everybody',
      docType: 'RFC',
      product: 'Accounts',
      tags: ['security', 'sign-in'],
      summary: 'No more passwords to forget, to reuse or to steal.',
      content:
        'One person may sign in by several identities: a passkey, the company account, an address that was verified. They all lead to the same person, and joining two people can be undone.',
    },
  },
  {
    slug: 'ledger',
    owner: 'edsger',
    published: true,
    obsolete: true,
    approvers: ['alan'],
    fields: {
      title: 'Keep the old ledger until spring',
      docType: 'Memo',
      product: 'Billing',
      tags: ['ledger', 'migration'],
      summary: 'Both ledgers run side by side; the new one is compared every night.',
      content:
        'The old ledger is read-only from January. Differences are reported to the team every morning. When thirty nights in a row were clean, it goes.',
    },
  },
  {
    slug: 'dark-mode',
    owner: 'ada',
    published: false,
    contributors: ['alan'],
    fields: {
      title: 'A reading room with the lights off',
      docType: 'PRD',
      product: 'Mobile',
      tags: ['design', 'reading'],
      summary: 'Dark mode, and why grey on black is not it.',
      content: 'Contrast first: 4.5 to 1 for text in both themes. Pictures keep their colours.',
    },
  },
  {
    slug: 'plan',
    owner: 'grace',
    published: false,
    contributors: ['ada', 'edsger'],
    fields: {
      title: 'What search learns next quarter',
      docType: 'Memo',
      product: 'Search',
      tags: ['search', 'plan'],
      summary: 'Synonyms, saved searches, and a look at what people do not find.',
      content: 'We read the searches without a result every Friday. The ten most common become work.',
    },
  },
]
