"""A demonstration that moves by itself: a made-up population, and a link that signs in once."""

from __future__ import annotations

import asyncio
import heapq
import hmac
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from doral.errors import DoralError, UnknownName
from doral.live.campaign import Campaign
from doral.live.errors import CampaignClosed, CampaignError, CampaignGone
from doral.service.access.entrance import set_cookie
from doral.service.access.guard import LONGEST_S, act_of
from doral.service.access.keys import Caller, new_key
from doral.service.demo.history import Crowd, Due, prepare, refuse_others
from doral.service.demo.population import Population, populations
from doral.service.service import Service, service_of
from doral.service.write_queue import WriteQueue

PATH = "/demo"
_PRIVATE = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
_NAME, _ROLES = "demonstration", ("admin",)


def link_router(token: str, *, leads_to: str) -> APIRouter:
    """The route of the link.

    Args:
        token: That the link carries.
        leads_to: The page that is shown then.
    """
    router = APIRouter(include_in_schema=False)
    unused = [token]

    @router.get(PATH)
    async def enter(request: Request, token: str = "") -> Response:
        if not unused or not hmac.compare_digest(token.encode(), unused[0].encode()):
            # Whoever is signed in sees the campaigns there, and everybody else is asked for a key.
            return RedirectResponse("/", status_code=303)
        unused.clear()
        answer = RedirectResponse(leads_to, status_code=303, headers=_PRIVATE)
        answer.headers["set-cookie"] = await _open_session(request)
        return answer

    return router


async def _open_session(request: Request) -> str:
    """The header `Set-Cookie`: a session of a key that nobody has, and that ends with it."""
    service, now = service_of(request), time.time()
    books = service.entrance.books
    key, _ = new_key(_NAME, _ROLES, now=now, expires_at=now + LONGEST_S)
    row, session = new_key(_NAME, _ROLES, now=now, expires_at=now + LONGEST_S, parent=key.id)

    caller = Caller(key_id=key.id, name=_NAME, roles=frozenset(_ROLES))

    def keep() -> None:
        books.add_key(key)
        books.add_key(row, act_of(request, caller, "signed in", None))

    await service.run(keep)
    return set_cookie(service.settings, session, seconds=int(LONGEST_S))


logger = logging.getLogger("doral.service.demo")

_MOST_BEHIND_S = 2.0  # a machine that slept does not see everybody come at once
_EXTENDED_FROM = 0.85  # of what was expected
_LOOK_EVERY = 50  # arrivals
_AGAIN_AFTER_S = 2.0
_IDLE_S = 5.0


async def begin(service: Service, *, seed: int = 0) -> list[Crowd]:
    """Half an hour of each campaign is told at once; a store that has campaigns of others is refused.

    Args:
        service: Whose store is fed.
        seed: Of who comes, and what they do.
    """
    everybody = populations(seed)
    await service.run(partial(refuse_others, service.store, everybody))
    now = time.time()
    return [await service.run(partial(prepare, service.store, one, now=now)) for one in everybody]


@asynccontextmanager
async def feeding(service: Service, crowds: Sequence[Crowd]) -> AsyncIterator[None]:
    """People come by themselves; at the end what was begun is finished.

    Args:
        service: Whose campaigns they come to.
        crowds: As `begin` has them; none where nothing is demonstrated.
    """
    feeder = _Feeder(service)
    tasks = [asyncio.create_task(feeder.feed(crowd)) for crowd in crowds]
    try:
        yield
    finally:
        feeder.ending.set()
        await asyncio.gather(*tasks)


class _Feeder:
    def __init__(self, service: Service) -> None:
        self._service = service
        self.ending = asyncio.Event()

    async def feed(self, crowd: Crowd) -> None:
        """One campaign, until the end."""
        population = crowd.population
        gap_s, arrival = crowd.next_arrival()
        next_at: float | None = time.time() + gap_s
        while not self.ending.is_set():
            try:
                queue = await self._service.queue(population.name)
                while crowd.due and crowd.due[0].at <= time.time():
                    await _tell(queue, crowd.due[0])
                    heapq.heappop(crowd.due)  # not before it was told: what fails is told again
                if next_at is not None and next_at <= time.time():
                    crowd.hear(await queue.decide(arrival))
                    if crowd.came % _LOOK_EVERY == 0:
                        await queue.write(lambda campaign: go_on(campaign, population))
                    gap_s, arrival = crowd.next_arrival()
                    next_at = max(next_at + gap_s, time.time() - _MOST_BEHIND_S)
            except CampaignClosed:
                next_at = None  # answers to what is open are still taken
            except (CampaignGone, UnknownName):
                logger.info("campaign %r: it was deleted; nobody comes any more", population.name)
                return
            except DoralError as error:  # a store that is busy, or full: it may get well
                logger.warning("campaign %r: the demonstration waits: %s", population.name, error)
                await self._sleep(_AGAIN_AFTER_S)
            except Exception:
                logger.exception("campaign %r: the demonstration of it has ended", population.name)
                return
            await self._sleep(_pause_s(next_at, crowd))

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.ending.wait(), timeout=seconds)
        except TimeoutError:
            return


def _pause_s(next_at: float | None, crowd: Crowd) -> float:
    """Until something happens."""
    times = [time.time() + _IDLE_S]
    if next_at is not None:
        times.append(next_at)
    if crowd.due:
        times.append(crowd.due[0].at)
    return max(0.0, min(times) - time.time())


async def _tell(queue: WriteQueue, due: Due) -> None:
    try:
        if due.reward is None:
            await queue.write(lambda campaign: campaign.cancel(due.decision_id))
        else:
            await queue.feedback(due.answer)
    except CampaignError as error:  # somebody who plays with it has answered or cancelled it before
        logger.info("a person of the demonstration was not heard: %s", error)


def go_on(campaign: Campaign, population: Population) -> bool:
    """Shortly before its end the campaign gets half as much again, of people and of money; whether it did.

    Args:
        campaign: That is fed.
        population: Whose people come to it.
    """
    share, came = campaign.session.read(lambda _, state: (state.time_share, state.round))
    if share < _EXTENDED_FROM:
        return False
    own = population.problem
    campaign.extend(own.horizon // 2, key=f"demo/extend/{came}")
    campaign.top_up(own.budget / 2, key=f"demo/top-up/{came}")
    return True
