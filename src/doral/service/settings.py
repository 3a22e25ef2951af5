"""How a service is run. Whatever is wrong is said before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one caller may ask for.

    Attributes:
        body_bytes: Of one request.
        body_s: Seconds in which a body has to arrive.
        batch: Decisions, answers or records in one request.
        rate_per_s: Requests per second of one key, on average; 0: no limit.
        burst: Requests that one key may send at once.
        sign_in_failures: Wrong keys from one address in a minute.
        streams: Event streams that may be open at once.
        queue: Requests of one campaign that may wait for their turn.
    """

    body_bytes: int = 16 * 1024 * 1024
    body_s: float = 30.0
    batch: int = 10_000
    rate_per_s: float = 0.0
    burst: int = 1_000
    sign_in_failures: int = 30
    streams: int = 256
    queue: int = 10_000


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """How a service is run.

    Attributes:
        storage: URL of the store.
        code: By campaign, the import path of a policy or a model of its own.
        host: Address to listen on.
        port: To listen on; 0: any that is free.
        tls_cert: File with the certificate, and those that vouch for it.
        tls_key: File with its private key.
        allow_plain_http: Listen on an address that others can reach, though nothing is encrypted.
        allow_direct: Listen with TLS on an address that others can reach, though no balancer stands before it.
        limits: What one caller may ask for.
        expire_every_s: How often decisions that are too old are settled; 0: never by itself.
        watch_every_s: How often alarms are looked for.
        webhook: URL that is told of alarms.
        webhook_secret: By which what is sent there is signed.
        stop_within_s: Seconds that requests get to end when the service is stopped.
        log_format: "json", "text", "auto": text at a terminal, JSON elsewhere; or "quiet": text, and only what
            somebody should look after.
        is_demo: Whether a made-up population feeds a campaign.
        demo_token: What a link has to carry that signs in to a demonstration, once.
        public_url: Under which people reach it, where a proxy stands before it.
    """

    storage: str
    code: Mapping[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 8787
    tls_cert: Path | None = None
    tls_key: Path | None = None
    allow_plain_http: bool = False
    allow_direct: bool = False
    limits: Limits = field(default_factory=Limits)
    expire_every_s: float = 60.0
    watch_every_s: float = 30.0
    webhook: str | None = None
    webhook_secret: str | None = field(default=None, repr=False)
    stop_within_s: float = 20.0
    log_format: str = "auto"
    is_demo: bool = False
    demo_token: str | None = field(default=None, repr=False)
    public_url: str | None = None
